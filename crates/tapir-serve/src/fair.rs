//! A queue that is fair to clients, and among the connections of a client.
//!
//! Start-time fair queueing (Goyal, Vin and Cheng, 1996), once for clients and once more inside each
//! for its connections: who has had least of the worker is served next, and pays what it cost. Who
//! comes back after a while begins at the time of the others: it owes nothing, and is owed nothing.
//! So work waits for the others' work in hand and for its own, however much others ask for.

use std::collections::{BTreeSet, HashMap, VecDeque};

/// Whose work it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Flow {
    pub(crate) client: u64,
    pub(crate) connection: u64,
}

/// Items of flows. Those of one connection come out in the order in which they went in.
pub(crate) struct FairQueue<T> {
    clients: Level<Level<VecDeque<T>>>,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { clients: Level::default() }
    }
}

impl<T> FairQueue<T> {
    pub(crate) fn push(&mut self, flow: Flow, item: T) {
        self.clients.push(flow.client, |connections| {
            connections.push(flow.connection, |items| items.push_back(item));
        });
    }

    /// The next item, and what `cost` says that its flow is charged for it.
    pub(crate) fn pop(&mut self, cost: impl Fn(&T) -> u64) -> Option<(T, u64)> {
        let take = |items: &mut VecDeque<T>| {
            let item = items.pop_front()?;
            let cost = cost(&item);
            Some(Taken { item, cost, empty: items.is_empty() })
        };
        let taken = self.clients.pop(|connections| {
            let taken = connections.pop(take)?;
            Some(Taken { empty: connections.ready.is_empty(), ..taken })
        });
        taken.map(|taken| (taken.item, taken.cost))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.clients.ready.is_empty()
    }
}

/// What came out of a flow's queue.
struct Taken<T> {
    item: T,
    cost: u64,
    /// Nothing is left in that queue.
    empty: bool,
}

/// Queues that are served by what they have had.
struct Level<Q> {
    flows: HashMap<u64, Account<Q>>,
    /// Flows that have something, by their account.
    ready: BTreeSet<(u64, u64)>,
    /// The account of the flow that was served last: virtual time.
    now: u64,
}

/// A flow's queue, and the virtual time at which it may be served next.
struct Account<Q> {
    start: u64,
    queue: Q,
}

impl<Q> Default for Level<Q> {
    fn default() -> Self {
        Self { flows: HashMap::new(), ready: BTreeSet::new(), now: 0 }
    }
}

impl<Q: Default> Level<Q> {
    fn push(&mut self, flow: u64, add: impl FnOnce(&mut Q)) {
        let new = || Account { start: self.now, queue: Q::default() };
        let account = self.flows.entry(flow).or_insert_with(new);
        if !self.ready.contains(&(account.start, flow)) {
            account.start = account.start.max(self.now);
            self.ready.insert((account.start, flow));
        }
        add(&mut account.queue);
    }

    fn pop<T>(&mut self, take: impl FnOnce(&mut Q) -> Option<Taken<T>>) -> Option<Taken<T>> {
        let (start, flow) = self.ready.pop_first()?;
        self.now = start;
        let account = self.flows.get_mut(&flow)?;
        let taken = take(&mut account.queue)?;
        account.start = start + taken.cost;
        if !taken.empty {
            self.ready.insert((account.start, flow));
        } else if self.ready.is_empty() {
            // Nobody waits: nobody has a claim on anybody.
            self.now = account.start;
        }
        self.forget();
        Some(taken)
    }

    /// Forgets flows that have nothing and owe nothing, now and then.
    fn forget(&mut self) {
        if self.flows.len() > 2 * self.ready.len() + 64 {
            let Self { flows, ready, now } = self;
            flows.retain(|flow, account| account.start > *now || ready.contains(&(account.start, *flow)));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn flow(client: u64, connection: u64) -> Flow {
        Flow { client, connection }
    }

    #[test]
    fn who_asks_for_much_waits_for_who_asks_for_little() {
        let mut queue = FairQueue::default();
        for _ in 0..100 {
            queue.push(flow(1, 1), 'x');
            queue.push(flow(1, 2), 'y');
        }
        let cost = |item: &char| if *item == 'a' { 6 } else { 128 };
        (0..20).for_each(|_| assert!(queue.pop(cost).is_some()));
        // However long the others have waited, the newcomer is served next, and so is what it asks
        // for after that.
        for _ in 0..10 {
            queue.push(flow(2, 3), 'a');
            let served: String = (0..2).filter_map(|_| queue.pop(cost)).map(|(item, _)| item).collect();
            assert!(served.contains('a'), "{served}");
        }
        // Within the client, its two connections take turns.
        let served: String = (0..20).filter_map(|_| queue.pop(cost)).map(|(item, _)| item).collect();
        assert_eq!(served.matches('x').count(), 10, "{served}");
    }

    #[test]
    fn a_new_connection_of_a_busy_client_is_served_soon() {
        let mut queue = FairQueue::default();
        (0..100).for_each(|_| queue.push(flow(1, 1), 'x'));
        (0..50).for_each(|_| assert!(queue.pop(|_| 128).is_some()));
        queue.push(flow(1, 2), 'a');
        let served: String = (0..2).filter_map(|_| queue.pop(|_| 128)).map(|(item, _)| item).collect();
        assert!(served.contains('a'), "{served}");
    }

    #[test]
    fn flows_that_are_done_are_forgotten() {
        let mut queue = FairQueue::default();
        for i in 0..10_000 {
            queue.push(flow(i, i), ());
            assert!(queue.pop(|()| 1).is_some());
        }
        assert!(queue.is_empty() && queue.clients.flows.len() < 200);
    }

    proptest! {
        /// Nothing is lost, connections keep their order, and as long as two clients have work, what
        /// they have had differs by no more than one item of each.
        #[test]
        fn shares_are_equal(
            items in proptest::collection::vec((0u64..3, 0u64..3, 1u64..200), 1..300),
        ) {
            let mut queue = FairQueue::default();
            for (index, &(client, connection, cost)) in items.iter().enumerate() {
                queue.push(flow(client, connection), (index, client, connection, cost));
            }
            let mut left = [0u64; 3];
            items.iter().for_each(|&(client, _, _)| left[client as usize] += 1);
            let mut had = [0u64; 3];
            let mut last: HashMap<(u64, u64), usize> = HashMap::new();
            while let Some(((index, client, connection, _), cost)) = queue.pop(|item| item.3) {
                had[client as usize] += cost;
                left[client as usize] -= 1;
                if let Some(before) = last.insert((client, connection), index) {
                    prop_assert!(before < index);
                }
                for a in 0..3 {
                    for b in 0..3 {
                        if left[a] > 0 && left[b] > 0 {
                            prop_assert!(had[a] <= had[b] + 200);
                        }
                    }
                }
            }
            prop_assert_eq!(left, [0; 3]);
        }
    }
}
