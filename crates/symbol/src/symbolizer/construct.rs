//! The place of a construct: from its outlined body, the location stored by its compiler, and the call into the
//! runtime.
//!
//! The return address alone may be that of any caller, since compilers turn calls at the ends of functions into jumps.
//! The body is the construct's own. If both name the same function, they describe the same call, and the more precise
//! name is used.

use super::Symbolizer;
use super::calls::Call;
use crate::code_place::{CodePlace, Frame};
use crate::name::{are_of_one_template, own_name};

/// A construct's location as clang writes it: `;file;function;line;column;;`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location<'a> {
    /// Source file, as given to the compiler.
    pub file: &'a str,
    /// The function's own name, without its scope.
    pub function: &'a str,
    /// Line.
    pub line: u32,
    /// Column; 0 if unknown.
    pub column: u32,
}

impl<'a> Location<'a> {
    /// Reads a location; `None` if it has another form or names no line.
    pub fn parse(text: &'a str) -> Option<Location<'a>> {
        let mut fields = text.strip_prefix(';')?.strip_suffix(";;")?.rsplitn(4, ';');
        let (column, line) = (fields.next()?, fields.next()?);
        let (function, file) = (fields.next()?, fields.next()?);
        let line = line.parse().ok().filter(|line| *line > 0)?;
        Some(Location { file, function, line, column: column.parse().unwrap_or(0) })
    }
}

impl Symbolizer {
    /// The place of a construct, from three inputs:
    ///
    /// - the return address of its call into an OpenMP runtime; if that is not known to be the construct's own, the
    ///   address after the first byte of `body`, or, without one, of the body that ends with the construct's call;
    /// - its outlined body (0: not known);
    /// - its location, written by the compiler (empty: none).
    pub fn construct_place(&mut self, return_address: u64, body: u64, location: &str) -> CodePlace {
        let location = Location::parse(location);
        if body == 0 && location.is_none() {
            return self.place_of_last_call(return_address.wrapping_sub(1));
        }
        let is_called = return_address != body.wrapping_add(1);
        let called = if is_called { self.runtime_call_place(return_address) } else { CodePlace::default() };
        let mut place = match self.body_place(body) {
            Some(place) => place,
            None if location.is_none() => return called,
            None => CodePlace { module: called.module.clone(), ..CodePlace::default() },
        };
        let frame = &mut place.frame;
        if let Some(location) = location {
            let file_name = |path: &str| path.rsplit('/').next().map(str::to_string);
            if frame.file.as_deref().and_then(file_name) != file_name(location.file) {
                frame.file = Some(location.file.to_string());
            }
            frame.line = Some(location.line);
            place.missing = None;
        }
        let calls: Vec<&Frame> = std::iter::once(&called.frame).chain(&called.inlined_into).collect();
        match calls.iter().position(|call| is_function_of(call, frame, location)) {
            // Without a line, the call is distinguished from others of its function.
            Some(_) if frame.line.is_none() => return called,
            Some(at) => {
                frame.function.clone_from(&calls[at].function);
                frame.is_nameless = calls[at].is_nameless;
                place.inlined_into = calls[at + 1..].iter().map(|outer| (*outer).clone()).collect();
            }
            None if !frame.is_nameless && frame.function.is_some() => {}
            None => match location {
                Some(location) => self.name_by_location(body, &mut place.frame, location),
                None if is_called && self.is_certain_call(return_address) => return called,
                None => {}
            },
        }
        place
    }

    /// The place of the call into an OpenMP runtime with which the body at an address ends; the body's function alone
    /// if it has several such calls.
    fn place_of_last_call(&mut self, body: u64) -> CodePlace {
        let Some((module, in_file)) = self.in_file(body) else { return self.runtime_call_place(body) };
        let (path, build_id, bias) = (module.path.clone(), module.build_id.clone(), module.bias);
        let file = self.file(&path, &build_id);
        let (jump, passed) = file.map_or((None, None), |file| {
            let jump = file.only_jump_in(in_file);
            (jump, jump.and_then(|after| file.body_passed(in_file, after)))
        });
        if let Some(place) = passed.and_then(|passed| self.body_place(passed.wrapping_add(bias))) {
            return place;
        }
        match jump {
            Some(after) => self.place_in_file(&path, &build_id, after - 1),
            None => {
                let CodePlace { frame, module, missing, .. } = self.place_in_file(&path, &build_id, in_file);
                let frame = Frame { file: None, line: None, ..frame };
                CodePlace { frame, module, missing, ..CodePlace::default() }
            }
        }
    }

    /// Names the function of a body by a location, for bodies with a name that lacks it.
    fn name_by_location(&mut self, body: u64, frame: &mut Frame, location: Location<'_>) {
        let module = self.in_file(body).map(|(module, _)| (module.path.clone(), module.build_id.clone()));
        let file = module.and_then(|(path, build_id)| self.file(&path, &build_id));
        let named =
            file.and_then(|file| file.function_named(location.function, location.file, location.line));
        frame.function = Some(named.unwrap_or_else(|| location.function.to_string()));
        frame.is_nameless = false;
    }

    fn is_certain_call(&mut self, return_address: u64) -> bool {
        let Some((module, in_file)) = self.in_file(return_address) else { return false };
        let (path, build_id) = (module.path.clone(), module.build_id.clone());
        match self.file(&path, &build_id) {
            // Code for another processor is not examined.
            Some(file) if !file.has_tail_calls() => true,
            Some(_) => !matches!(self.find_call(&path, &build_id, in_file), Call::Unknown | Call::Below),
            None => false,
        }
    }

    /// The function that contains the source of the outlined body at an address, with the construct's line if debug
    /// information has it; `None` for an unknown function, or one that is not an outlined body.
    fn body_place(&mut self, body: u64) -> Option<CodePlace> {
        let (module, in_file) = self.in_file(body)?;
        let (path, build_id) = (module.path.clone(), module.build_id.clone());
        self.body_at(&path, &build_id, in_file)
    }

    /// The place of the outlined body around an address of a file: the function that contains its source, with the
    /// construct's line if debug information has it; `None` if the function is not an outlined one or not known.
    pub fn body_around(&mut self, path: &str, build_id: &str, in_file: u64) -> Option<CodePlace> {
        let start = self.file(path, build_id)?.start_of_function(in_file)?;
        self.body_at(path, build_id, start)
    }

    /// Whether the call into an OpenMP runtime that ends at an address of a file is in a function that was called
    /// through a pointer and has no frame, because it ended with the call.
    pub fn is_behind_pointer(&mut self, path: &str, build_id: &str, in_file: u64) -> bool {
        matches!(self.find_call(path, build_id, in_file.wrapping_add(1)), Call::Below)
    }

    fn body_at(&mut self, path: &str, build_id: &str, in_file: u64) -> Option<CodePlace> {
        let place = self.place_in_file(path, build_id, in_file);
        let file = self.file(path, build_id)?;
        // The body may begin with inlined code.
        let frame = place.inlined_into.last().unwrap_or(&place.frame);
        let is_body = frame.cut_out || frame.function.is_none() && !file.has_symbols();
        if !is_body {
            return None;
        }
        let (source, line) = file.first_line_at(in_file).unzip();
        let frame = Frame {
            file: source.or_else(|| frame.file.clone()),
            line: line.or(frame.construct_line).or(frame.line),
            construct_line: None,
            ..frame.clone()
        };
        Some(CodePlace { frame, inlined_into: Vec::new(), offset: None, ..place })
    }
}

/// Whether a call is in the function that a body was written in.
fn is_function_of(call: &Frame, body: &Frame, location: Option<Location<'_>>) -> bool {
    let Some(called) = call.function.as_deref() else { return false };
    match (&body.function, location) {
        (Some(function), _) if !body.is_nameless => are_of_one_template(called, function),
        (_, Some(location)) => own_name(called) == location.function,
        (Some(function), None) => are_of_one_template(called, function),
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_read_from_their_end() {
        let location = Location::parse(";src/a;b.c;solve;41;9;;");
        assert_eq!(location, Some(Location { file: "src/a;b.c", function: "solve", line: 41, column: 9 }));
        for text in ["", ";", ";;", ";;;", ";unknown;unknown;0;0;;", "a;b;1;2;;", ";a;b;x;2;;", ";a;b;1;2"] {
            assert_eq!(Location::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_call_is_in_the_function_of_a_body_by_its_name() {
        let frame = |function: &str, is_nameless| Frame {
            function: Some(function.to_string()),
            is_nameless,
            ..Frame::default()
        };
        let location = Location::parse(";a.cpp;solve;4;9;;");
        let is_same =
            |call: &str, body: &Frame, location| is_function_of(&frame(call, false), body, location);
        assert!(is_same("ns::solve<int>(int)", &frame("ns::solve<double>(double)", false), location));
        assert!(!is_same("step()", &frame("ns::solve()", false), location));
        assert!(is_same("ns::solve<int>(int)", &frame("other", true), location));
        assert!(!is_same("step()", &frame("other", true), location));
        assert!(!is_same("step()", &Frame::default(), None));
    }
}
