//! Options with a fixed set of values from another crate.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use std::sync::LazyLock;
use taskscope_analysis::call_paths::TaskContext;
use taskscope_analysis::call_views::{Column, FlatBy};
use taskscope_analysis::slo::Mode;
use taskscope_check::device_rules;
use taskscope_event::models::MODELS;
use taskscope_event::spec::ModelSpec;
use taskscope_model::ViolationCode;
use taskscope_profile::Metric;
use taskscope_session::instrumentation::{Behaviour, By};
use taskscope_view::{PathsView, Section};

/// A value of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Choice<T>(pub T);

macro_rules! choices {
    ($( $set:ty { $( $value:expr, $name:expr, $help:literal; )* } )*) => {$(
        impl ValueEnum for Choice<$set> {
            fn value_variants<'a>() -> &'a [Self] {
                &[$( Choice($value), )*]
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                $( if self.0 == $value {
                    return Some(PossibleValue::new($name).help($help));
                } )*
                None
            }
        }
    )*};
}

choices! {
    TaskContext {
        TaskContext::Creation, "creation", "Its creation";
        TaskContext::Execution, "execution", "Its execution; not known in profiles";
    }
    Mode {
        Mode::Direct, Mode::Direct.name(), "Starvation: the published formula";
        Mode::Chained, Mode::Chained.name(),
            "Overhead if that worker's own cause is overhead, else starvation";
        Mode::Root, Mode::Root.name(), "That worker's own cause";
    }
    By {
        By::Thread, By::Thread.name(), "Per thread: a task switch ends and begins sections";
        By::Task, By::Task.name(), "Per task, in its own time, as if it had never moved";
    }
    Behaviour {
        Behaviour::Plain, Behaviour::Plain.name(), "The innermost state and, of each key, the newest burst";
        Behaviour::StackedStates, Behaviour::StackedStates.name(), "All states; bursts as in plain";
        Behaviour::StackedBursts, Behaviour::StackedBursts.name(), "All bursts; states as in plain";
        Behaviour::Stacked, Behaviour::Stacked.name(), "All states and all bursts";
        Behaviour::Raw, Behaviour::Raw.name(), "Nothing is shown again; for receivers that keep contexts themselves";
    }
    PathsView {
        PathsView::TopDown, "top-down", "From the program's start inwards";
        PathsView::BottomUp, "bottom-up", "From the innermost functions to their callers";
        PathsView::Flat(FlatBy::Function), "flat", "Functions";
        PathsView::Flat(FlatBy::Loop), "loops", "Loops";
        PathsView::Flat(FlatBy::Line), "lines", "Lines";
    }
}

/// The columns of call paths by name: those of every view, then single metrics.
static COLUMNS: LazyLock<(Vec<Choice<Column>>, Vec<String>)> = LazyLock::new(|| {
    let plain = Column::ALL.into_iter().map(|column| (Choice(column), column.name().to_owned()));
    let metrics = Metric::all().filter_map(|metric| {
        let name = metric.name()?.to_string();
        // The metric of a column has the column's name.
        (Column::named(&name)? == Column::Of(metric)).then_some((Choice(Column::Of(metric)), name))
    });
    plain.chain(metrics).unzip()
});

impl ValueEnum for Choice<Column> {
    fn value_variants<'a>() -> &'a [Self] {
        &COLUMNS.0
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (columns, names) = &*COLUMNS;
        let name = names.get(columns.iter().position(|column| column == self)?)?.as_str();
        Some(match (self.0, name.strip_suffix("_ns")) {
            // They are many; the help has examples.
            (Column::Of(_), _) => PossibleValue::new(name).hide(true),
            (_, Some(short)) => PossibleValue::new(short).alias(name),
            (_, None) => PossibleValue::new(name),
        })
    }
}

/// A section of a report, or all but those of the task graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SectionChoice {
    /// One section.
    One(Section),
    /// All sections but those of the task graph.
    All,
}

impl ValueEnum for SectionChoice {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<SectionChoice>> = LazyLock::new(|| {
            let sections = |sections: &[Section]| -> Vec<_> {
                sections.iter().map(|section| SectionChoice::One(*section)).collect()
            };
            let graph_sections = sections(&Section::OF_GRAPH);
            [
                sections(&Section::OF_THREADS),
                sections(&Section::OTHERS),
                vec![SectionChoice::All],
                graph_sections,
            ]
            .concat()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let section = |section: Section| PossibleValue::new(section.name()).help(section.meaning());
        Some(match self {
            SectionChoice::One(Section::CallPaths) => section(Section::CallPaths).alias("profile"),
            SectionChoice::One(one) => section(*one),
            SectionChoice::All => PossibleValue::new("all").help("All of the above"),
        })
    }
}

/// A rule that a trace can break.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// A rule of threads' events.
    OfThreads(ViolationCode),
    /// A rule of device queues, by its name.
    OfDevices(&'static str),
}

impl ValueEnum for Rule {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<Rule>> = LazyLock::new(|| {
            let thread_rules = ViolationCode::ALL.iter().copied().map(Rule::OfThreads);
            thread_rules.chain(device_rules::RULES.iter().map(|(name, _)| Rule::OfDevices(name))).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self {
            Rule::OfThreads(code) => code.name(),
            Rule::OfDevices(name) => name,
        }))
    }
}

/// A model of events.
#[derive(Clone, Copy, Debug)]
pub struct ModelChoice(pub &'static ModelSpec);

impl ValueEnum for ModelChoice {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<ModelChoice>> = LazyLock::new(|| MODELS.iter().map(ModelChoice).collect());
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name))
    }
}
