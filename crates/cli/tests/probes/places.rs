//! Where functions are found, and what is refused.

use super::*;

#[test]
fn what_cannot_be_probed_is_refused_with_a_reason() {
    if !probeable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(shop) = compile(folder.path(), "shop", &["-g", "-O1"]) else { return };
    let shop = shop.to_str().unwrap();
    let resolver = tracewing_programs::probes::Resolver::new(None);
    let fits = |offset: &i32| resolver.probe(&format!("{shop}:serve+{offset}")).is_ok();
    let within = (1..20).find(|offset| !fits(offset)).unwrap();
    let within = &*format!("serve+{within}");
    let stripped = folder.path().join("stripped");
    assert!(Command::new("strip").arg("-o").arg(&stripped).arg(shop).status().unwrap().success());
    let stripped = stripped.to_str().unwrap();
    for (probe, reasons) in [
        ("serv", &["shop has no function serv", "similar: serve"][..]),
        ("serve what", &["what cannot be recorded", "number, customer, order"]),
        ("serve weight", &["floating-point register"]),
        ("serve order->basket", &["a structure", "items, coupon"]),
        ("serve order.number", &["through a pointer: write ->number"]),
        ("serve order->urgent", &["bit field"]),
        ("serve order->nothing", &["there is no member nothing; there are number, basket"]),
        ("serve $retval", &["add %return"]),
        ("serve%return number", &["are gone when it returns"]),
        ("serve number order->number", &["another field is named number"]),
        ("serve+100000", &["the function has", "bytes"]),
        (within, &["no instruction begins there; the nearest are at +0x"]),
        ("0x10", &["there is no code"]),
        ("serve a=%nothing", &["cannot place the probe", "Invalid argument"]),
    ] {
        let stderr = refused(&["--probe", &format!("{shop}:{probe}")], &[shop, "1"]);
        assert!(reasons.iter().all(|reason| stderr.contains(reason)), "{probe}: {stderr}");
    }
    for (probe, reason) in [
        (format!("{stripped}:serve"), "stripped of all symbols"),
        ("libc.so.6:nothing_like_that".to_owned(), "libc.so.6 has no function"),
        ("libc.so.6:memcpy".to_owned(), "chooses one for the processor"),
        ("/etc/passwd:f".to_owned(), "not a 64-bit ELF file"),
        ("libnowhere.so:f".to_owned(), "no such program, nor a library"),
        ("serve".to_owned(), "is not a probe: it has no colon"),
    ] {
        let stderr = refused(&["--probe", &probe], &[stripped, "1"]);
        assert!(stderr.contains(reason), "{probe}: {stderr}");
    }
    let stderr = refused(&["--usdt", "shop:taken"], &[shop, "1"]);
    assert!(
        stderr.contains("no USDT probe is named shop:taken in the command and its libraries"),
        "{stderr}"
    );
}

#[test]
fn stripped_programs_are_probed_by_address_and_static_ones_in_themselves() {
    if !probeable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(shop) = compile(folder.path(), "shop", &["-O1", "-static"]) else { return };
    let shop = shop.to_str().unwrap();
    let symbols = String::from_utf8(Command::new("nm").arg(shop).ran().stdout).unwrap();
    let address = symbols.lines().find_map(|line| line.strip_suffix(" T serve")).unwrap();
    let address = format!("{:#x}", u64::from_str_radix(address, 16).unwrap());
    let own = record(&["--probe", &format!("{shop}:getppid"), "--probe", "libc.so.6:getppid"], &[shop, "50"]);
    assert!(own.stderr.contains("shop is statically linked: it does not use libc.so.6"), "{}", own.stderr);
    assert_eq!(named(&events(&own), "shop:getppid").len(), 50);
    assert!(own.stderr.contains("no event of libc.so.6:getppid: nothing"), "{}", own.stderr);

    assert!(Command::new("strip").arg(shop).status().unwrap().success());
    let probe = format!("{shop}:{address} number=%di:s32 customer=+0(%si):string");
    let recording = record(&["--probe", &probe], &[shop, "50"]);
    let events = events(&recording);
    let calls = named(&events, &format!("shop:{address}"));
    assert_eq!(calls.len(), 50);
    assert_eq!((&calls[9]["number"], &calls[9]["customer"]), (&json!(8), &json!("Ann")));
}

#[test]
fn debug_information_and_symbols_are_found_in_a_file_of_their_own() {
    if !probeable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(shop) = compile(folder.path(), "shop", &["-g", "-O0"]) else { return };
    let run = |program: &str, arguments: &[&str]| {
        let status = Command::new(program).args(arguments).current_dir(folder.path()).status().unwrap();
        assert!(status.success(), "{program} {arguments:?}");
    };
    run("objcopy", &["--only-keep-debug", "shop", "shop.debug"]);
    run("strip", &["shop"]);
    run("objcopy", &["--add-gnu-debuglink=shop.debug", "shop"]);
    let shop = shop.to_str().unwrap();
    let recording = record(&["--probe", &format!("{shop}:serve customer")], &[shop, "10"]);
    let events = events(&recording);
    assert_eq!(named(&events, "shop:serve").len(), 10);
    assert_eq!(named(&events, "shop:serve")[1]["customer"], "Ann");
}

#[test]
fn restartable_sequences_and_own_sites_are_refused() {
    if !probeable() {
        return;
    }
    let tasks = program("tasks");
    let tasks = tasks.to_str().unwrap();
    let mut child =
        Command::new(tasks).arg("sequences").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let sequences: Vec<(u64, u64)> = lines
        .map_while(|line| {
            let words: Vec<_> = line.split_ascii_whitespace().skip(1).map(number).collect();
            matches!(words[..], [_, _]).then(|| (words[0], words[1]))
        })
        .collect();
    drop(child.stdin.take());
    let _ = child.kill();
    child.wait().unwrap();
    assert!(!sequences.is_empty());
    let headers = Command::new("readelf").args(["-lW", tasks]).output();
    let Ok(headers) = headers else {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Program("readelf"),
            "readelf is not installed",
        );
    };
    let headers = headers.text();
    let code = headers.lines().find(|line| line.contains("LOAD") && line.contains("R E")).unwrap();
    let parts: Vec<u64> = code
        .split_ascii_whitespace()
        .skip(1)
        .take(2)
        .map(|word| number(word.trim_start_matches("0x")))
        .collect();
    let distance = parts[1] - parts[0];
    let resolver = tracewing_programs::probes::Resolver::new(None);
    for &(begin, length) in &sequences {
        let resolved = |at: u64| resolver.probe(&format!("{tasks}:{:#x}", at + distance));
        for inside in [begin, begin + length - 1] {
            let error = resolved(inside).unwrap_err().to_string();
            assert!(error.contains("restartable sequence"), "{error}");
        }
        // Not placed, as no instruction may begin there.
        for outside in [begin - 1, begin + length] {
            assert!(resolved(outside).is_ok());
        }
    }
    let sites = harness::tracewing().args(["sites", "--format", "json", tasks]).output();
    let sites: Value = serde_json::from_slice(&sites.unwrap().stdout).unwrap();
    let site = &sites["sites"][0];
    let probe = format!("{tasks}:{}", site["address"].as_str().unwrap());
    let error = resolver.probe(&probe).unwrap_err().to_string();
    assert!(error.contains(&format!("the site of the event {}", site["name"].as_str().unwrap())), "{error}");

    let probe = format!("{tasks}:{:#x}", sequences[0].0 + distance);
    assert!(refused(&["--probe", &probe], &["true"]).contains("restartable sequence"));
}
