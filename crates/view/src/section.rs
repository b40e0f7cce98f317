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

            /// The topic of the section, for help.
            pub const fn meaning(self) -> &'static str {
                match self { $($( Section::$variant => $meaning, )*)* }
            }
        }
    };
}

sections! {
    /// Sections computed from the time of threads, in the order of the report.
    OF_THREADS: 11 {
        Summary "summary" "The run: completeness and recording cost";
        Efficiency "efficiency" "Parallel efficiency and its factors";
        Ranks "ranks" "Ranks of an MPI job";
        Calls "calls" "Calls of MPI";
        Time "time" "Where the time went";
        Findings "findings" "The largest losses with their causes";
        Threads "threads" "Time of each thread";
        Tasks "tasks" "Task types";
        Constructs "constructs" "Parallel and worksharing constructs";
        Locks "locks" "Locks and critical constructs";
        Waits "waits" "Waits of threads for each other, and who made them wait";
    }
    /// Sections with a source of their own.
    OTHERS: 3 {
        Devices "devices" "Device queues";
        Instrumentation "instrumentation" "States and events of instrumented programs";
        CallPaths "call-paths" "Call paths";
    }
    /// Sections computed from the task graph, in the order of the report.
    OF_GRAPH: 9 {
        Ledger "ledger" "Task graph: the cause of every worker-nanosecond";
        Blame "blame" "Task graph: the culprits of losses";
        Data "data" "Task graph: waiting for data";
        Queues "queues" "Task graph: ready tasks without a worker";
        Diagnosis "diagnosis" "Task graph: root causes and remedies";
        Idle "idle" "Task graph: starvation, latency, overhead";
        Path "path" "Task graph: the critical path";
        Pop "pop" "Task graph: POP's efficiencies";
        WhatIf "whatif" "Task graph: the run with other costs";
    }
}

impl Section {
    /// The sections of the short report.
    pub const SHORT: [Section; 7] = [
        Section::Summary,
        Section::Efficiency,
        Section::Ranks,
        Section::Calls,
        Section::Time,
        Section::Findings,
        Section::Waits,
    ];
}
