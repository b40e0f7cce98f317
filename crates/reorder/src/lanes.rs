//! Lanes: the fewest rows on which overlapping operations can be drawn, each monotone in time.

/// Gives every operation the first lane that is free when it starts.
///
/// With operations in start order this uses as many lanes as operations overlap at most, and no
/// fewer would do (colouring of an interval graph). In any other order it may use more, but a lane's
/// begins and ends still never go back.
///
/// A tournament over the lanes' last ends finds the first free one in logarithmic time.
#[derive(Clone, Debug, Default)]
pub struct Lanes {
    /// Binary tree in an array: node 1 is the root, leaves are lanes; each holds the earliest end below it.
    /// `u64::MAX` for leaves without a lane.
    earliest_end: Vec<u64>,
    leaves: usize,
    used: u32,
}

impl Lanes {
    /// The lane for an operation from `start` to `end`, which is taken until `end`.
    #[inline]
    pub fn take(&mut self, start: u64, end: u64) -> u32 {
        // One lane, and it is free: the tree is its root.
        if self.leaves == 1 && self.earliest_end[1] <= start {
            self.earliest_end[1] = end;
            return 0;
        }
        self.take_of_many(start, end)
    }

    fn take_of_many(&mut self, start: u64, end: u64) -> u32 {
        if self.leaves == 0 || (self.earliest_end[1] > start && self.used as usize == self.leaves) {
            self.double();
        }
        let lane = if self.earliest_end[1] <= start {
            let mut node = 1;
            while node < self.leaves {
                node *= 2;
                if self.earliest_end[node] > start {
                    node += 1;
                }
            }
            node - self.leaves
        } else {
            self.used as usize
        };
        self.used = self.used.max(lane as u32 + 1);
        self.set(lane, end);
        lane as u32
    }

    /// Lanes used so far.
    pub fn count(&self) -> u32 {
        self.used
    }

    fn set(&mut self, lane: usize, end: u64) {
        let mut node = self.leaves + lane;
        self.earliest_end[node] = end;
        while node > 1 {
            node /= 2;
            self.earliest_end[node] = self.earliest_end[2 * node].min(self.earliest_end[2 * node + 1]);
        }
    }

    fn double(&mut self) {
        let ends: Vec<u64> =
            (0..self.used as usize).map(|lane| self.earliest_end[self.leaves + lane]).collect();
        self.leaves = (2 * self.leaves).max(1);
        self.earliest_end = vec![u64::MAX; 2 * self.leaves];
        for (lane, end) in ends.into_iter().enumerate() {
            self.set(lane, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_free_lane_is_taken() {
        let mut lanes = Lanes::default();
        let taken: Vec<u32> = [(0, 10), (2, 5), (3, 9), (5, 6), (9, 12), (10, 11)]
            .map(|(start, end)| lanes.take(start, end))
            .to_vec();
        assert_eq!(taken, [0, 1, 2, 1, 1, 0]);
        assert_eq!(lanes.count(), 3);
    }

    #[test]
    fn an_end_of_the_largest_number_blocks_its_lane() {
        let mut lanes = Lanes::default();
        assert_eq!(lanes.take(0, u64::MAX), 0);
        assert_eq!(lanes.take(5, 6), 1);
        assert_eq!(lanes.take(u64::MAX, u64::MAX), 0);
    }
}
