//! The package installed in a bare Debian, where it records, and in one that systemd has started, where its
//! units run.

use crate::packages;
use crate::steps::run as run_command;
use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

/// What the trial runs in the bare Debian: a program with locks and threads is recorded and read, and the bug
/// of the tutorial is found.
const TRIAL: &str = "set -e
dpkg -i /tracewing.deb
tracewing --version
seq 200000 > /numbers
tracewing record --locks -o /trace -- sort --parallel=2 -S 4M -r /numbers -o /sorted
tracewing info /trace > /info
tracewing threads /trace -n 3
tracewing locks /trace -n 3
test -n \"$(tracewing list -n 1 /trace)\"
test -s /usr/share/man/man1/tracewing-record.1.gz
test $(ls /usr/share/man/man1/tracewing*.1.gz | wc -l) -gt 30
gzip -t /usr/share/man/man1/tracewing*.1.gz
gzip -t /usr/share/doc/tracewing/notices.gz
grep -q ' inferno .*CDDL' /usr/share/doc/tracewing/copyright
test -s /usr/lib/systemd/system/tracewing.service
test -s /usr/lib/systemd/user/tracewing.service
test -s /usr/lib/systemd/system/tracewing.socket
test -s /usr/lib/systemd/user/tracewing.socket
test \"$(stat -c '%a %U %G' /var/lib/tracewing)\" = '2750 root tracewing'
for shell in bash-completion/completions/ zsh/vendor-completions/_ fish/vendor_completions.d/; do
    grep -q breakdown /usr/share/${shell}tracewing*
done
PATH=$PATH:/usr/lib/tracewing/examples
tracewing record -q -o /slow -- quotes --seconds 2
tracewing latency /slow --begin quotes:request --end quotes:answer --match '$task' -n 1
tracewing locks /slow --by caller -n 1 2>&1 | tee /locks
grep 'examples/quotes/src/cache.rs:[0-9]*, is held across an .await' /locks
tracewing record -q -o /fixed -- quotes --seconds 2 --fixed
tracewing locks /fixed --by caller 2>&1 | tee /locks
if grep 'is held across an .await' /locks; then exit 1; fi
cd /usr/share/doc/tracewing
test -s docs/tutorial.md
links=$(grep -o '][(][^)#:]*' README.md | cut -c3- | grep -v ^http)
test -n \"$links\"
for link in $links; do test -s $link; done
cd /
tracewing session create passing -o /passing
tracewing session destroy passing
dpkg -r tracewing
test ! -e /usr/bin/tracewing
test -d /var/lib/tracewing/sessions
dpkg -P tracewing
for folder in /usr/lib /usr/share/doc /var/lib /run /etc; do test ! -e $folder/tracewing; done
";

/// What a Debian with systemd has in addition.
const SYSTEMD: &str = "--include=systemd,systemd-sysv,dbus,libpam-systemd,dbus-user-session,procps";

/// Makes a control group for the machine, and new namespaces in it.
const ENTER: &str = "set -e
mount --make-rprivate / && mount -t cgroup2 none \"$1/mnt\"
mkdir -p \"$1/mnt/tracewing-trial\" && echo $$ > \"$1/mnt/tracewing-trial/cgroup.procs\" && umount \"$1/mnt\"
exec unshare --pid --fork --kill-child --net --uts --ipc --cgroup sh -c \"$2\" sh \"$1\"
";

/// Starts systemd in the Debian, with devices of its own, and settings of the kernel that it cannot change.
const BOOT: &str = "set -e
mount --bind \"$1\" \"$1\" && mount -t proc proc \"$1/proc\" && mount -t sysfs sysfs \"$1/sys\"
mount --bind \"$1/proc/sys\" \"$1/proc/sys\" && mount -o remount,bind,ro \"$1/proc/sys\"
mount -t tmpfs -o mode=755 tmpfs \"$1/dev\" && mkdir \"$1/dev/shm\" \"$1/dev/pts\"
for device in null zero full random urandom tty; do
    touch \"$1/dev/$device\" && mount --bind /dev/$device \"$1/dev/$device\"
done
mount -t devpts -o newinstance,ptmxmode=666 devpts \"$1/dev/pts\" && ln -s pts/ptmx \"$1/dev/ptmx\"
mount -t tmpfs tmpfs \"$1/run\" && mount -t tmpfs tmpfs \"$1/tmp\"
mount -t cgroup2 none \"$1/sys/fs/cgroup\" && mount -t tracefs tracefs \"$1/sys/kernel/tracing\"
exec chroot \"$1\" env -i container=chroot PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=trial.service
";

/// Removes what is left of the machine's control groups.
const LEAVE: &str = "mount -t cgroup2 none \"$1/mnt\"
find \"$1/mnt/tracewing-trial\" -depth -type d -exec rmdir {} +
";

/// The trial is a unit too, and ends the machine.
const UNIT_OF_TRIAL: &str = "[Unit]
Requires=multi-user.target
After=multi-user.target
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
TimeoutStartSec=420
Environment=HOME=/root
StandardOutput=file:/log
StandardError=file:/log
ExecStart=/bin/sh -ex /trial
";

/// Root's unit: a session of programs of two users and one of the kernel; the service is killed and
/// continues them, a recorder is killed and replaced, and nothing is left when the unit is stopped. Then a
/// user's unit, also by its socket. Then a member of the group starts a session, which starts the service by
/// its socket, and stops it; another user is refused; the service ends when it has nothing to do. Removing
/// the package stops all.
const UNITS_TRIAL: &str = "
trap 'test $? = 0 || journalctl --no-pager -n 50' EXIT
dpkg -i /tracewing.deb
PATH=$PATH:/usr/lib/tracewing/examples
cd /var/lib && mkdir -p tracewing /etc/tracewing/sessions.d && cd tracewing
tracewing session create web -e 'quotes:*' -o web
tracewing session create kernel --system-wide -k sched_switch -o kernel
for session in web kernel; do
    tracewing session save $session -o /etc/tracewing/sessions.d/$session.toml
    tracewing session destroy $session
done
instances=$(ls /sys/kernel/tracing/instances)
systemctl start tracewing
systemctl status --no-pager tracewing
recorders() { tracewing session status --format json | grep -o '\"recorder\":[0-9][0-9]*' | cut -d: -f2; }
test $(recorders | wc -l) = 2
(cd /tmp && quotes --seconds 1)
(cd /tmp && setpriv --reuid=65534 --regid=65534 --clear-groups quotes --seconds 1)
tracewing session status
before=$(recorders)
kill -9 $(systemctl show -p MainPID --value tracewing)
until systemctl status --no-pager tracewing | grep 'Status: .2 sessions'; do sleep 0.1; done
test \"$(recorders)\" = \"$before\"
kill -9 $(recorders | tail -n 1)
until test $(ls -d web/* | wc -l) = 2 && test $(recorders | wc -l) = 2; do sleep 0.1; done
systemctl stop tracewing
if pgrep -l ^tracewing; then exit 1; fi
test \"$(ls /sys/kernel/tracing/instances)\" = \"$instances\"
test $(tracewing list web/*/main 2> /dev/null | grep -o ' pid = [0-9]*' | sort -u | wc -l) = 2
test -n \"$(tracewing list -n 1 kernel/*/main)\"
systemd-analyze security --no-pager tracewing | tail -n 1
systemd-analyze security --no-pager --offline=true /usr/lib/systemd/user/tracewing.service | tail -n 1

useradd -m -d /srv/ann ann
loginctl enable-linger ann
cat > /ann << 'END'
set -ex
cd
mkdir -p .config/tracewing/sessions
tracewing session create own -e 'quotes:*'
tracewing session save own -o .config/tracewing/sessions/own.toml
tracewing session destroy own
until systemctl --user start tracewing; do sleep 0.1; done
systemctl --user status --no-pager tracewing
quotes --seconds 1
systemctl --user stop tracewing
test -n \"$(tracewing list -n 1 own/*/main)\"
systemctl --user start tracewing.socket
if systemctl --user is-active tracewing; then exit 1; fi
test \"$(stat -c '%a' $XDG_RUNTIME_DIR/tracewing/control)\" = 600
tracewing service list --socket $XDG_RUNTIME_DIR/tracewing/control | grep 'own '
systemctl --user is-active tracewing
systemctl --user stop tracewing.socket tracewing
END
setpriv --reuid=ann --regid=ann --init-groups env HOME=/srv/ann XDG_RUNTIME_DIR=/run/user/$(id -u ann) sh /ann
if pgrep -l ^tracewing; then exit 1; fi

mkdir /later && mv /etc/tracewing/sessions.d/* /later
sed '1i start = \"on-demand\"' /later/web.toml > /etc/tracewing/sessions.d/web.toml
useradd -m -d /srv/bob -G tracewing bob
as() { user=$1; shift; setpriv --reuid=$user --regid=$user --init-groups env HOME=/srv/$user \"$@\"; }
systemctl stop tracewing.socket
if as bob tracewing service list; then exit 1; fi
systemctl enable --now tracewing.socket
if systemctl is-active tracewing; then exit 1; fi
test \"$(stat -c '%a %U %G' /run/tracewing/control)\" = '660 root tracewing'
as bob tracewing service list | grep 'web  stopped  on demand'
systemctl is-active tracewing
test $(recorders | wc -l) = 0
recording=$(as bob tracewing service start web)
test $(recorders | wc -l) = 1
(cd /tmp && quotes --seconds 1)
as bob tracewing service status web
if as ann tracewing service stop web 2> /refused; then exit 1; fi
grep 'not a member of group tracewing' /refused
as bob tracewing service stop web
test $(recorders | wc -l) = 0
test -n \"$(as bob tracewing list -n 1 $recording/main)\"
if as ann tracewing list -n 1 $recording/main; then exit 1; fi
journalctl --no-pager -u tracewing | grep \"user $(id -u bob) asks for start web\"
while systemctl is-active tracewing; do sleep 1; done
test \"$(systemctl show -p Result --value tracewing)\" = success
as bob tracewing service list | grep 'web  stopped  on demand'

systemctl enable tracewing
cp /later/web.toml /etc/tracewing/sessions.d
until test $(recorders | wc -l) = 1; do sleep 0.1; done
dpkg -r tracewing
if pgrep -l ^tracewing; then exit 1; fi
if ls /etc/systemd/system/*.wants/tracewing.*; then exit 1; fi
test ! -e /run/tracewing/control
touch /good
";

/// Installs the package in a Debian that has nothing else, records there, and removes it.
pub fn in_bare_debian(package: &Path, root: &Path) -> Result<()> {
    packages::ensure(packages::FOR_TRIAL)?;
    if root.exists() {
        fs::remove_dir_all(root)?;
    }
    run_command(Command::new("debootstrap").args(["--variant=minbase", "bookworm"]).arg(root))?;
    fs::copy(package, root.join("tracewing.deb"))?;
    fs::write(root.join("trial"), TRIAL)?;
    // In a mount namespace of its own, so that nothing stays mounted.
    let script = "mount -t proc proc \"$1/proc\" && mount --rbind /sys \"$1/sys\" && mount --rbind /dev \"$1/dev\" \
                  && exec chroot \"$1\" sh -x /trial";
    let tried = run_command(Command::new("unshare").args(["--mount", "sh", "-c", script, "sh"]).arg(root));
    let info = fs::read_to_string(root.join("info")).unwrap_or_default();
    fs::remove_dir_all(root)?;
    tried?;
    ensure!(info.contains("lock:"), "the recording in the bare Debian has no events of locks");
    println!("the package records in a bare Debian");
    Ok(())
}

/// Installs the package where systemd runs, as the first process of a container, and tries its units.
pub fn of_units(package: &Path, root: &Path) -> Result<()> {
    packages::ensure(packages::FOR_TRIAL)?;
    if root.exists() {
        fs::remove_dir_all(root)?;
    }
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.args(["--variant=minbase", SYSTEMD, "bookworm"]);
    run_command(debootstrap.arg(root))?;
    fs::copy(package, root.join("tracewing.deb"))?;
    fs::write(root.join("trial"), UNITS_TRIAL)?;
    fs::write(root.join("etc/systemd/system/trial.service"), UNIT_OF_TRIAL)?;
    // A machine that does not come up ends, too.
    let mut machine = Command::new("timeout");
    machine.args(["--kill-after=10", "900", "unshare", "--mount", "sh", "-c", ENTER, "sh"]);
    let ran = run_command(machine.arg(root).arg(BOOT));
    let mut leave = Command::new("unshare");
    run_command(leave.args(["--mount", "sh", "-c", LEAVE, "sh"]).arg(root))?;
    let log = fs::read_to_string(root.join("log")).unwrap_or_default();
    print!("{log}");
    let is_good = root.join("good").exists();
    fs::remove_dir_all(root)?;
    ensure!(is_good, "the units do not work under systemd ({ran:?})");
    println!("the units work under systemd");
    Ok(())
}
