//! Parallel efficiency and its factors.

use crate::blame::{Charge, Culprit};
use crate::by_state::ByState;
use crate::states::StateLedger;
use taskscope_execution::{Group, State};

/// A product law: each factor is the fraction of the time that remains after one kind of loss, so that their
/// product is useful time over capacity, exactly.
///
/// With capacity C (without the time, other than useful, in which a worker's process starts or ends MPI), useful time U, and the losses I in worker-nanoseconds:
///
/// ```text
/// cpu_availability  A / C, A = C − Io                Io: no CPU, or more workers than CPUs
/// serialization     (A − Is) / A                     Is: nothing to do, or waiting for a lock
/// load_balance      (A − Is − Il) / (A − Is)         Il: waiting in a team while others work
/// device_offload    (A − Is − Il − Id) / (A − Is − Il)
///                                                    Id: waiting for a device
/// blocked           (A − Is − Il − Id − Ib) / (A − Is − Il − Id)
///                                                    Ib: blocked in the kernel, in code of the program
/// runtime_overhead  (A − Is − Il − Id − Ib − Ir) / (A − Is − Il − Id − Ib)
///                                                    Ir: the runtime, and waits without a working thread
/// known             U / (A − Is − Il − Id − Ib − Ir) the rest is time in an unknown state
/// parallel          U / C, the product
/// ```
///
/// The order of removals is that of TALP's OpenMP metrics (DLB 3.6: serialization, load balance, scheduling),
/// with waiting for locks counted as serialization, and unknown time separate; waiting for devices is
/// separate as in its device offload efficiency. CPU availability comes first: the other factors apply to the
/// time in which the program had CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Efficiency {
    /// Useful time over capacity.
    pub parallel: f64,
    /// Without the time that the operating system took.
    pub cpu_availability: f64,
    /// Without the time when there was nothing to do or one's turn had not come.
    pub serialization: f64,
    /// Without the waiting in teams for those that still worked.
    pub load_balance: f64,
    /// Without the waiting for devices.
    pub device_offload: f64,
    /// Without the time blocked in the kernel in code of the program.
    pub blocked: f64,
    /// Without the runtime's own time.
    pub runtime_overhead: f64,
    /// Fraction left without unknown time.
    pub known: f64,
    /// Useful nanoseconds.
    pub useful_ns: u64,
    /// Worker-nanoseconds without a CPU, or with more workers than CPUs.
    pub cpu_availability_ns: u64,
    /// Worker-nanoseconds lost to serialization.
    pub serialization_ns: u64,
    /// Worker-nanoseconds lost to load imbalance.
    pub load_balance_ns: u64,
    /// Worker-nanoseconds lost in waiting for devices.
    pub device_offload_ns: u64,
    /// Worker-nanoseconds blocked in the kernel in code of the program.
    pub blocked_ns: u64,
    /// Worker-nanoseconds lost to the runtime.
    pub runtime_overhead_ns: u64,
    /// Worker-nanoseconds in an unknown state.
    pub unknown_ns: u64,
    /// Worker-nanoseconds, other than useful, while their process started or ended MPI: in none of the above. POP and TALP leave
    /// them out too (TALP 3.6 measures from the end of `MPI_Init` to the begin of `MPI_Finalize`).
    pub start_ns: u64,
}

/// Derives the factors from the ledger and from the charges for waiting.
pub fn efficiency(ledger: &StateLedger, charges: &[Charge]) -> Efficiency {
    let nobody = charges.iter().filter(|c| matches!(c.culprit, Culprit::Nobody(_)));
    let in_vain: u64 = nobody.map(|c| c.by_state.group_ns(Group::Sync)).sum();
    Efficiency::of(&ledger.started(), ledger.starting.total(), in_vain)
}

impl Efficiency {
    /// Derives the factors from time by state without the start and end of MPI, which took `start_ns`. `in_vain` is the
    /// waiting in teams while no thread worked.
    pub fn of(by_state: &ByState, start_ns: u64, in_vain: u64) -> Efficiency {
        let group = |group| by_state.group_ns(group);
        let in_vain = in_vain.min(group(Group::Sync));
        let useful_ns = group(Group::Useful);
        let cpu_availability_ns = group(Group::Off);
        let serialization_ns = group(Group::Idle) + group(Group::Mutex);
        // Threads that start MPI are charged with the waiting meanwhile, so that none of it is without a culprit.
        let load_balance_ns = group(Group::Sync) - in_vain;
        let device_offload_ns = group(Group::Device);
        let blocked_ns = group(Group::Blocked);
        let runtime_overhead_ns = group(Group::Runtime) + in_vain;
        let unknown_ns = group(Group::Unknown);
        let capacity_ns = by_state.total();
        let mut left = capacity_ns;
        let mut factor = |loss: u64| {
            let before = left;
            left -= loss;
            if before == 0 { 1.0 } else { left as f64 / before as f64 }
        };
        let cpu_availability = factor(cpu_availability_ns);
        let serialization = factor(serialization_ns);
        let load_balance = factor(load_balance_ns);
        let device_offload = factor(device_offload_ns);
        let blocked = factor(blocked_ns);
        let runtime_overhead = factor(runtime_overhead_ns);
        let known = factor(unknown_ns);
        let parallel = if capacity_ns == 0 { 0.0 } else { useful_ns as f64 / capacity_ns as f64 };
        Efficiency {
            parallel,
            cpu_availability,
            serialization,
            load_balance,
            device_offload,
            blocked,
            runtime_overhead,
            known,
            useful_ns,
            cpu_availability_ns,
            serialization_ns,
            load_balance_ns,
            device_offload_ns,
            blocked_ns,
            runtime_overhead_ns,
            unknown_ns,
            start_ns,
        }
    }
}

/// The part of capacity that a state took.
pub fn share(ledger: &StateLedger, state: State) -> f64 {
    if ledger.capacity_ns == 0 { 0.0 } else { ledger.by_state.get(state) as f64 / ledger.capacity_ns as f64 }
}
