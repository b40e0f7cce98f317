//! The instructions of a function, each with its source line.
//!
//! Code is decoded from the begin of the function, as x86-64 instructions have no fixed length. Bytes that are not an
//! instruction are shown as such, and decoding continues behind them.

use super::{ModuleFile, code_of};
use crate::name;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Formatter, IntelFormatter};

/// Instructions of one function that are decoded; generated code has functions of many MiB.
const MAX_INSTRUCTIONS: usize = 100_000;

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its address in the file.
    pub address: u64,
    /// Its text in Intel's syntax, with the called function.
    pub text: String,
    /// The target of a direct jump in the function, else 0.
    pub target: u64,
    /// Its file and line, if known.
    pub line: Option<(String, u32)>,
}

/// The code of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionCode {
    /// Its name; empty if unknown.
    pub name: String,
    /// Its instructions, ascending.
    pub instructions: Vec<Instruction>,
    /// Whether there are more.
    pub is_cut: bool,
}

/// The reason why the code of a function is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCode {
    /// The file has no code for x86-64.
    OtherProcessor,
    /// Neither a symbol nor an unwind table has the begin of the function.
    UnknownFunction,
    /// The file does not have the bytes of the function.
    NoBytes,
}

impl NoCode {
    /// The reason in words.
    pub const fn words(self) -> &'static str {
        match self {
            NoCode::OtherProcessor => "only code for x86-64 can be shown",
            NoCode::UnknownFunction => "no symbol and no unwind table has the begin of the function",
            NoCode::NoBytes => "the file does not have the bytes of the function",
        }
    }
}

impl ModuleFile {
    /// Begin and end of the function that holds an address, by its symbol or else by its unwind table.
    pub fn function_range(&mut self, address: u64) -> Option<(u64, u64)> {
        self.read_range_of(address);
        self.known_range(address)
    }

    /// The instructions of the function that holds an address.
    ///
    /// # Errors
    /// If its code is not known.
    pub fn instructions(&mut self, address: u64) -> Result<FunctionCode, NoCode> {
        if self.code.is_none() {
            self.code = Some(code_of(&self.path).ok_or(NoCode::OtherProcessor)?);
        }
        let (start, end) = self.function_range(address).ok_or(NoCode::UnknownFunction)?;
        let sections = self.code.iter().flat_map(|code| &code.sections);
        let bytes = sections.filter_map(|(at, bytes)| {
            let from = usize::try_from(start.checked_sub(*at)?).ok()?;
            let length = usize::try_from(end - start).ok()?;
            bytes.get(from..bytes.len().min(from.checked_add(length)?))
        });
        let bytes = bytes.into_iter().find(|bytes| !bytes.is_empty()).ok_or(NoCode::NoBytes)?;
        let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        let mut formatter = IntelFormatter::new();
        formatter.options_mut().set_space_after_operand_separator(true);
        formatter.options_mut().set_hex_prefix("0x");
        formatter.options_mut().set_hex_suffix("");
        formatter.options_mut().set_branch_leading_zeros(false);
        let mut function =
            FunctionCode { name: self.symbol_at(start).unwrap_or_default(), ..FunctionCode::default() };
        while decoder.can_decode() {
            if function.instructions.len() == MAX_INSTRUCTIONS {
                function.is_cut = true;
                break;
            }
            let instruction = decoder.decode();
            let mut text = String::new();
            if instruction.is_invalid() {
                text.push_str("(no instruction)");
            } else {
                formatter.format(&instruction, &mut text);
            }
            let is_direct = matches!(
                instruction.flow_control(),
                FlowControl::Call | FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
            );
            let target = if is_direct { instruction.near_branch_target() } else { 0 };
            let is_inside = (start..end).contains(&target);
            if target != 0
                && !is_inside
                && let Some(name) = self.symbol_at(target)
            {
                text.push_str(&format!(" <{name}>"));
            }
            let address = instruction.ip();
            let target = if is_inside { target } else { 0 };
            function.instructions.push(Instruction { address, text, target, line: self.line_of(address) });
        }
        Ok(function)
    }

    /// The name of the function or stub that begins at an address, as users write it.
    fn symbol_at(&self, start: u64) -> Option<String> {
        let of = |all: &[super::Function]| {
            let at = all.partition_point(|function| function.start < start);
            all.get(at)
                .filter(|function| function.start == start)
                .map(|function| name::demangle(&function.name))
        };
        of(&self.functions).or_else(|| of(&self.stubs))
    }

    fn line_of(&self, address: u64) -> Option<(String, u32)> {
        let location = self.context.as_ref()?.find_location(address).ok()??;
        location.file.map(str::to_owned).zip(location.line)
    }
}
