use crate::Code;

/// Categories and values are ASCII.
const ASCII: usize = 128;
/// Set in the number of a code whose category or value is not.
const NOT_ASCII: usize = 0x80_8000;

/// Where each code of some models has its row, in a table that is asked for every event.
#[derive(Clone, Debug)]
pub struct CodeIndex {
    /// By letter; all models that are not in the table share the place after the others.
    places: [u8; 256],
    models: usize,
}

impl CodeIndex {
    /// For the models of these letters.
    ///
    /// # Panics
    /// If there are more than 255.
    pub fn new(letters: &[u8]) -> CodeIndex {
        let mut places = [u8::try_from(letters.len()).expect("letters are bytes"); 256];
        for (place, letter) in letters.iter().enumerate() {
            places[usize::from(*letter)] = place as u8;
        }
        CodeIndex { places, models: letters.len() }
    }

    /// How many rows the table has.
    pub fn rows(&self) -> usize {
        (self.models + 1) * ASCII * ASCII
    }

    /// The row of a code, by its model's place, category and value; none where these are not ASCII.
    #[inline(always)]
    pub fn row(&self, code: Code) -> Option<usize> {
        // The letter lowest, category and value above it.
        let number = code.to_u32() as usize;
        let (category, value) = (number >> 8 & (ASCII - 1), number >> 16);
        let place = usize::from(self.places[number & 0xff]);
        (number & NOT_ASCII == 0).then_some((place * ASCII + category) * ASCII + value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_models_have_rows_of_their_own() {
        let index = CodeIndex::new(b"OV");
        let row = |letter, category, value| index.row(Code([letter, category, value]));
        let rows = [row(b'O', 0, 0), row(b'O', b'H', b'x'), row(b'V', 0, 0), row(b'V', 127, 127)];
        let others = row(b'X', 0, 0).unwrap();
        assert!(rows.is_sorted() && rows.iter().all(|row| row.unwrap() < others));
        assert_eq!(row(b'X', b'H', b'x'), row(b'Y', b'H', b'x'));
        assert_eq!(row(b'Z', 127, 127), Some(index.rows() - 1));
        assert_eq!((row(b'O', 200, b'x'), row(b'O', b'H', 255)), (None, None));
    }
}
