//! Names of instrumented programs, and mistakes that their recorder noticed.

use crate::payload::{text, u32_at, u64_at};
use crate::semantic::state::instrumented::Named;
use crate::semantic::{Interpreter, Short};
use taskscope_event::Code;
use taskscope_event::models::instrument as i;
use taskscope_execution::{Anomaly, Definition, Observer, ProcessIndex, ThreadIndex, TypeIndex};

impl Interpreter {
    /// The domain's number in the trace: those of one name are one. A process names its own before it uses them.
    pub(super) fn domain(&mut self, thread: ThreadIndex, number: u32) -> u32 {
        let process = self.threads[thread.index()].process;
        if number < i::FIRST_OWN_DOMAIN {
            return number;
        }
        self.instrumented.domains.get(&(process, number)).copied().unwrap_or_else(|| {
            // Without a name it belongs to one process.
            let unnamed = format!("\0{} {number}", process.0);
            self.instrumented.domain_of_name(&unnamed)
        })
    }

    pub(super) fn named_type<O: Observer>(
        &mut self,
        process: ProcessIndex,
        named: Named,
        out: &mut O,
    ) -> TypeIndex {
        if let Some(ty) = self.instrumented.types.get(&(process, named)) {
            return *ty;
        }
        let ty = self.names.new_type();
        self.instrumented.types.insert((process, named), ty);
        out.define(Definition::Type { ty, process, label: "" });
        ty
    }

    pub(super) fn name_or_mistake<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: Code,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let process = self.threads[thread.index()].process;
        match code {
            i::STATE => {
                let number = u32_at(payload, 0).ok_or(Short)?;
                let class_number = u32_at(payload, 4).ok_or(Short)?;
                self.instrumented.classes.insert((process, number), class_number);
                let ty = self.named_type(process, Named::State(number), out);
                out.define(Definition::Type { ty, process, label: &text(&payload[8..]).0 });
            }
            i::DOMAIN => {
                let number = u32_at(payload, 0).ok_or(Short)?;
                let name = text(payload.get(4..).ok_or(Short)?).0.into_owned();
                let domain = self.instrumented.domain_of_name(&name);
                self.instrumented.domains.insert((process, number), domain);
            }
            i::TASK_KIND => {
                let number = u32_at(payload, 0).ok_or(Short)?;
                let line = u32_at(payload, 4).ok_or(Short)?;
                let (name, rest) = text(&payload[8..]);
                let (file, _) = text(rest);
                let ty = self.named_type(process, Named::Kind(number), out);
                let short = file.rsplit('/').next().unwrap_or_default();
                let label = if short.is_empty() {
                    name.into_owned()
                } else {
                    format!("{name} [task at {short}:{line}]").trim_start().to_owned()
                };
                out.define(Definition::Type { ty, process, label: &label });
            }
            i::PROBLEM => {
                u64_at(payload, 4).ok_or(Short)?;
                // It is recorded again as its count grows.
                let mistake = (process, [&payload[..4], &payload[12..]].concat());
                if self.instrumented.mistakes.insert(mistake) {
                    out.anomaly(thread, at, Anomaly::Misuse);
                }
            }
            _ => {}
        }
        Ok(())
    }
}
