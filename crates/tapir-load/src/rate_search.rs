//! The search for the highest rate that a server holds.

/// Every step up offers so many times the words of the last.
const STEP: f64 = 1.15;
/// How often the gap between a rate that was held and one that was not is halved.
const HALVINGS: usize = 3;
/// The search ends after so many rates.
const MOST_RATES: usize = 20;

/// Which rate to try next: up in steps until one is not held, then halfway, a few times.
///
/// ```
/// let mut search = tapir_load::RateSearch::above(3.0);
/// while let Some(rate) = search.next_rate() {
///     search.note(rate, rate < 5.0);
/// }
/// assert!((4.5..5.0).contains(&search.highest()));
/// ```
#[derive(Clone, Debug)]
pub struct RateSearch {
    held: f64,
    lost: Option<f64>,
    tried: usize,
    halvings: usize,
}

impl RateSearch {
    /// From a rate that was held.
    pub fn above(held: f64) -> Self {
        Self { held, lost: None, tried: 0, halvings: 0 }
    }

    /// The rate to try; none if the search is over.
    pub fn next_rate(&self) -> Option<f64> {
        if self.tried == MOST_RATES || self.halvings == HALVINGS {
            return None;
        }
        Some(self.lost.map_or(self.held * STEP, |lost| f64::midpoint(self.held, lost)))
    }

    /// What came of it.
    pub fn note(&mut self, rate: f64, held: bool) {
        self.tried += 1;
        self.halvings += usize::from(self.lost.is_some());
        if held {
            self.held = rate;
        } else {
            self.lost = Some(rate);
        }
    }

    /// The highest rate that was held.
    pub fn highest(&self) -> f64 {
        self.held
    }
}
