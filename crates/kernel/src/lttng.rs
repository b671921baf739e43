//! The names that LTTng gives to kernel events and their fields, so that tools made for its traces understand
//! ours.
//!
//! Where lttng-modules has an event under another name than the kernel, or a field, the name is translated;
//! where it records another value under that name, so is the value (priorities: LTTng's are relative to the
//! first non-realtime one, 20 where the kernel says 120). Events that LTTng does not have keep the kernel's
//! names. Names looked up in lttng-modules 2.13 (`include/instrumentation/events/`).

/// Lowest priority that is not realtime in the kernel's numbering (`MAX_RT_PRIO`,
/// `include/linux/sched/prio.h`).
pub(crate) const MAX_RT_PRIO: i32 = 100;

/// Event names that follow no rule: system, the kernel's name, LTTng's.
const RENAMED: &[(&str, &str, &str)] = &[
    ("irq_vectors", "x86_platform_ipi_entry", "x86_irq_vectors_ipi_entry"),
    ("irq_vectors", "x86_platform_ipi_exit", "x86_irq_vectors_ipi_exit"),
    ("kvmmmu", "fast_page_fault", "kvm_mmu_fast_page_fault"),
    ("kvmmmu", "handle_mmio_page_fault", "kvm_mmu_handle_mmio_page_fault"),
    ("kvmmmu", "mark_mmio_spte", "kvm_mmu_mark_mmio_spte"),
    ("kvm", "vcpu_match_mmio", "kvm_x86_vcpu_match_mmio"),
    ("compaction", "mm_compaction_isolate_freepages", "compaction_isolate_freepages"),
    ("compaction", "mm_compaction_isolate_migratepages", "compaction_isolate_migratepages"),
    ("compaction", "mm_compaction_migratepages", "compaction_migratepages"),
    ("vmscan", "mm_shrink_slab_end", "mm_vmscan_shrink_slab_end"),
    ("vmscan", "mm_shrink_slab_start", "mm_vmscan_shrink_slab_start"),
    ("net", "netif_rx", "net_if_rx"),
    ("net", "netif_rx_entry", "net_if_rx_entry"),
    ("net", "netif_rx_exit", "net_if_rx_exit"),
    ("net", "netif_receive_skb", "net_if_receive_skb"),
    ("net", "netif_receive_skb_entry", "net_if_receive_skb_entry"),
    ("net", "netif_receive_skb_exit", "net_if_receive_skb_exit"),
    ("net", "netif_receive_skb_list_entry", "net_if_receive_skb_list_entry"),
    ("net", "netif_receive_skb_list_exit", "net_if_receive_skb_list_exit"),
    ("printk", "console", "printk_console"),
    ("skb", "consume_skb", "skb_consume"),
    ("skb", "kfree_skb", "skb_kfree"),
];

/// Events that LTTng prefixes: system, prefix, the kernel's names.
const PREFIXED: &[(&str, &str, &[&str])] = &[
    (
        "btrfs",
        "btrfs_",
        &[
            "add_delayed_data_ref",
            "add_delayed_ref_head",
            "add_delayed_tree_ref",
            "run_delayed_data_ref",
            "run_delayed_ref_head",
            "run_delayed_tree_ref",
        ],
    ),
    ("exceptions", "x86_exceptions_", &["page_fault_kernel", "page_fault_user"]),
    ("irq", "irq_", &["softirq_entry", "softirq_exit", "softirq_raise"]),
    (
        "kmem",
        "kmem_",
        &[
            "kfree",
            "kmalloc",
            "mm_page_alloc",
            "mm_page_alloc_extfrag",
            "mm_page_alloc_zone_locked",
            "mm_page_free",
            "mm_page_free_batched",
            "mm_page_pcpu_drain",
        ],
    ),
    (
        "net",
        "net_",
        &["napi_gro_frags_entry", "napi_gro_frags_exit", "napi_gro_receive_entry", "napi_gro_receive_exit"],
    ),
    ("power", "power_", &["cpu_frequency", "cpu_idle", "wakeup_source_activate", "wakeup_source_deactivate"]),
    (
        "timer",
        "timer_",
        &[
            "hrtimer_cancel",
            "hrtimer_expire_entry",
            "hrtimer_expire_exit",
            "hrtimer_init",
            "hrtimer_start",
            "itimer_expire",
            "itimer_state",
        ],
    ),
    ("writeback", "writeback_", &["balance_dirty_pages", "bdi_dirty_ratelimit", "global_dirty_state"]),
];

/// The name of an event in the trace.
pub fn event_name(system: &str, name: &str) -> String {
    if let Some((.., lttng)) = RENAMED.iter().find(|(s, n, _)| (*s, *n) == (system, name)) {
        return (*lttng).to_owned();
    }
    if let Some((_, prefix, _)) = PREFIXED.iter().find(|(s, _, names)| *s == system && names.contains(&name))
    {
        return format!("{prefix}{name}");
    }
    match system {
        "syscalls" => match (name.strip_prefix("sys_enter_"), name.strip_prefix("sys_exit_")) {
            (Some(call), _) => format!("syscall_entry_{call}"),
            (_, Some(call)) => format!("syscall_exit_{call}"),
            _ => name.to_owned(),
        },
        "irq_vectors" if name.ends_with("_entry") || name.ends_with("_exit") => {
            format!("x86_irq_vectors_{name}")
        }
        "kvm" => match name.strip_prefix("kvm_") {
            Some(rest) if KVM_X86.contains(&rest) => format!("kvm_x86_{rest}"),
            _ => name.to_owned(),
        },
        _ => name.to_owned(),
    }
}

/// Events `kvm_…` that LTTng calls `kvm_x86_…`.
const KVM_X86: &[&str] = &[
    "apic",
    "apic_accept_irq",
    "apic_ipi",
    "cpuid",
    "cr",
    "emulate_insn",
    "entry",
    "eoi",
    "exit",
    "hv_hypercall",
    "hypercall",
    "inj_exception",
    "inj_virq",
    "invlpga",
    "msr",
    "nested_intercepts",
    "nested_intr_vmexit",
    "nested_vmexit",
    "nested_vmexit_inject",
    "page_fault",
    "pic_set_irq",
    "pio",
    "pv_eoi",
    "skinit",
    "track_tsc",
    "update_master_clock",
    "write_tsc_offset",
];

/// The name of a field in the trace. What the scheduler's events call a pid is a thread's number: LTTng says
/// tid. The address of a probe is `ip`, as LTTng has it.
pub fn field_name(system: &str, field: &str) -> String {
    if let Some(of_probe) = field.strip_prefix("__probe_") {
        return of_probe.to_owned();
    }
    match (system, field.strip_suffix("pid")) {
        ("sched" | "task", Some(stem)) if stem.is_empty() || stem.ends_with('_') => format!("{stem}tid"),
        _ => field.to_owned(),
    }
}

/// Whether a field is a priority that LTTng counts from [`MAX_RT_PRIO`].
pub(crate) fn is_priority(system: &str, field: &str) -> bool {
    system == "sched" && matches!(field, "prio" | "prev_prio" | "next_prio" | "oldprio" | "newprio")
}

/// Whether LTTng has this system's numbers without labels, on which its readers rely.
pub(crate) fn keeps_plain_numbers(system: &str) -> bool {
    matches!(system, "sched" | "irq" | "irq_vectors" | "signal")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_lttng_modules() {
        for (system, name, expected) in [
            ("sched", "sched_switch", "sched_switch"),
            ("irq", "softirq_entry", "irq_softirq_entry"),
            ("irq", "irq_handler_entry", "irq_handler_entry"),
            ("irq_vectors", "local_timer_entry", "x86_irq_vectors_local_timer_entry"),
            ("irq_vectors", "x86_platform_ipi_exit", "x86_irq_vectors_ipi_exit"),
            ("irq_vectors", "vector_alloc", "vector_alloc"),
            ("exceptions", "page_fault_user", "x86_exceptions_page_fault_user"),
            ("syscalls", "sys_enter_openat", "syscall_entry_openat"),
            ("syscalls", "sys_exit_openat", "syscall_exit_openat"),
            ("timer", "hrtimer_start", "timer_hrtimer_start"),
            ("kvm", "kvm_exit", "kvm_x86_exit"),
            ("kvm", "kvm_test_age_hva", "kvm_test_age_hva"),
            ("skb", "kfree_skb", "skb_kfree"),
        ] {
            assert_eq!(event_name(system, name), expected);
        }
        for (system, field, expected) in [
            ("sched", "pid", "tid"),
            ("task", "pid", "tid"),
            ("sched", "prev_pid", "prev_tid"),
            ("sched", "old_pid", "old_tid"),
            ("sched", "cpupid", "cpupid"),
            ("signal", "pid", "pid"),
            ("tracewing_1_2", "__probe_ip", "ip"),
            ("tracewing_1_2", "__probe_ret_ip", "ret_ip"),
        ] {
            assert_eq!(field_name(system, field), expected);
        }
    }
}
