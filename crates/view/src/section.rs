//! Sections of a report.

macro_rules! sections {
    ($( $(#[$about:meta])* $group:ident: $count:literal {
        $( $variant:ident $name:literal $meaning:literal; )*
    } )*) => {
        /// A section of a report.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Section {
            $($( #[doc = $meaning] $variant, )*)*
        }

        impl Section {
            $(
                $(#[$about])*
                pub const $group: [Section; $count] = [$( Section::$variant, )*];
            )*

            /// All sections.
            pub const ALL: &'static [Section] = &[$($( Section::$variant, )*)*];

            /// The name on the command line and in JSON.
            pub const fn name(self) -> &'static str {
                match self { $($( Section::$variant => $name, )*)* }
            }

            /// What the section is about, for help.
            pub const fn meaning(self) -> &'static str {
                match self { $($( Section::$variant => $meaning, )*)* }
            }
        }
    };
}

sections! {
    /// Sections computed from the time of threads, in the order of the report.
    OF_THREADS: 10 {
        Summary "summary" "The run: how complete, how costly";
        Efficiency "efficiency" "Parallel efficiency and its factors";
        Ranks "ranks" "Ranks of an MPI job";
        Calls "calls" "Calls of MPI";
        Time "time" "Where the time went";
        Findings "findings" "The largest losses with their causes";
        Threads "threads" "Time of each thread";
        Tasks "tasks" "Task types";
        Constructs "constructs" "Parallel and worksharing constructs";
        Locks "locks" "Locks and critical constructs";
    }
    /// Sections with a source of their own.
    OTHERS: 3 {
        Devices "devices" "Device queues";
        Instrumentation "instrumentation" "What the program emits of itself";
        CallPaths "call-paths" "Call paths";
    }
    /// Sections computed from the task graph, in the order of the report.
    OF_GRAPH: 9 {
        Ledger "ledger" "By the task graph: what every worker-nanosecond went into";
        Blame "blame" "By the task graph: what is to blame for losses";
        Data "data" "By the task graph: waiting for data";
        Queues "queues" "By the task graph: ready tasks without a worker";
        Diagnosis "diagnosis" "By the task graph: what the lost time means";
        Idle "idle" "By the task graph: starvation, latency, overhead";
        Path "path" "By the task graph: the critical path";
        Pop "pop" "By the task graph: POP's efficiencies";
        WhatIf "whatif" "By the task graph: the run with other costs";
    }
}

impl Section {
    /// The sections of the short report.
    pub const SHORT: [Section; 6] = [
        Section::Summary,
        Section::Efficiency,
        Section::Ranks,
        Section::Calls,
        Section::Time,
        Section::Findings,
    ];
}
