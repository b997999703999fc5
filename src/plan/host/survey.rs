//! What a run does of which nobody said what it is to do: a look at everything, in about a minute.

use super::{Draft, HostFacts, HostRequest, cores};
use model::config::host::ProcessorChoice;
use model::record::one_word;
use model::units::{Bytes, Nanos};
use model::workload::HostKind;

/// Windows of work for processors, and of everything else.
const LONG: Nanos = Nanos::millis(2_000);
const SHORT: Nanos = Nanos::millis(1_000);
/// Load before each: clocks rise, caches fill.
const WARMUP: Nanos = Nanos::millis(200);
/// Sizes of memory, each four times the one before: every cache is a step, and what lies behind the last one is the memory.
const SIZES: [Bytes; 7] =
    [Bytes::kib(16), Bytes::kib(64), Bytes::kib(256), Bytes::mib(1), Bytes::mib(4), Bytes::mib(16), Bytes::mib(64)];
/// Least memory that no cache is to hold, and how many times a cache's size that is to be.
const BEHIND_CACHES: Bytes = Bytes::mib(256);
const TIMES_CACHE: u64 = 4;
/// Least memory of each thread where all of them go through memory.
const MIN_OF_THREAD: Bytes = Bytes::mib(16);
/// Share of the memory that is free which a survey takes.
const SHARE_OF_FREE: u64 = 4;

/// The steps of a survey on these processors.
pub(super) fn drafts(request: &HostRequest, facts: &HostFacts, processors: &[u32]) -> Vec<Draft> {
    let survey = Survey { request, facts, processors };
    let mut drafts = survey.processors();
    drafts.extend(survey.memory());
    drafts.extend(survey.nodes());
    drafts.extend(survey.waiting());
    drafts
}

struct Survey<'a> {
    request: &'a HostRequest,
    facts: &'a HostFacts,
    processors: &'a [u32],
}

impl Survey<'_> {
    fn draft(&self, kind: HostKind, processors: &[u32]) -> Draft {
        let window = if HostKind::PROCESSOR.contains(&kind) { LONG } else { SHORT };
        Draft {
            label: kind.name().to_owned(),
            kinds: vec![kind],
            processors: processors.to_vec(),
            size: self.large(),
            memory_of: None,
            wake_on: None,
            warmup: self.request.warmup.unwrap_or(WARMUP),
            duration: self.request.duration.unwrap_or(window),
        }
    }

    fn first(&self) -> &[u32] {
        &self.processors[..self.processors.len().min(1)]
    }

    /// Each kind on one processor, on one of each core where these are fewer, and on all.
    fn processors(&self) -> Vec<Draft> {
        if self.request.load.processors == ProcessorChoice::Each {
            let one = |number: &u32| Draft {
                label: format!("{}_cpu{number}", HostKind::Checksum.name()),
                ..self.draft(HostKind::Checksum, &[*number])
            };
            return self.processors.iter().map(one).collect();
        }
        let cores = cores(self.processors, self.facts);
        let mut drafts = Vec::new();
        for kind in HostKind::PROCESSOR {
            drafts.push(self.draft(kind, self.first()));
            if cores.len() < self.processors.len() && cores.len() > 1 {
                drafts.push(self.draft(kind, &cores));
            }
            if self.processors.len() > 1 {
                drafts.push(self.draft(kind, self.processors));
            }
        }
        drafts
    }

    /// Latency and bandwidth of one processor by size, and bandwidth of more and more of them.
    fn memory(&self) -> Vec<Draft> {
        let large = self.large();
        let sizes: Vec<Bytes> = match self.request.load.size_bytes {
            Some(size) => vec![size],
            None => SIZES.into_iter().filter(|size| *size < large).chain([large]).collect(),
        };
        let of = |kind: HostKind, size: Bytes, processors: &[u32]| Draft {
            label: format!("{}_{}", kind.name(), one_word(size)),
            size,
            ..self.draft(kind, processors)
        };
        let mut drafts: Vec<Draft> =
            sizes.iter().map(|size| of(HostKind::MemoryLatency, *size, self.first())).collect();
        drafts.extend(sizes.iter().map(|size| of(HostKind::MemoryTriad, *size, self.first())));
        let all = self.processors.len();
        let doublings = std::iter::successors(Some(2), |count| Some(count * 2)).take_while(|count| *count < all);
        for count in doublings.chain((all > 1).then_some(all)) {
            let each = Bytes(large.0 / count as u64).max(MIN_OF_THREAD).min(large);
            let each = self.request.load.size_bytes.unwrap_or(each);
            drafts.push(of(HostKind::MemoryTriad, each, &self.processors[..count]));
        }
        drafts
    }

    /// The same from the memory of another node.
    fn nodes(&self) -> Vec<Draft> {
        let nodes = self.facts.topology.as_ref().map_or(&[][..], |topology| &topology.nodes);
        let Some(near) = nodes.iter().find(|node| node.processors.contains(&self.first()[0])) else {
            return Vec::new();
        };
        let other = |node: &&model::record::NumaNode| node.number != near.number;
        let distance = |number: u32| near.distances.get(number as usize).copied().unwrap_or(0);
        let far = nodes.iter().filter(other).max_by_key(|node| distance(node.number));
        let far_processor = far.and_then(|node| {
            let is_allowed = |number: &&u32| self.facts.allowed.contains(number);
            Some((node.number, *node.processors.iter().find(is_allowed)?))
        });
        let Some((far, processor)) = far_processor else { return Vec::new() };
        let of = |kind: HostKind| Draft {
            label: format!("{}_node{}-{far}", kind.name(), near.number),
            memory_of: Some(processor),
            ..self.draft(kind, self.first())
        };
        vec![of(HostKind::MemoryLatency), of(HostKind::MemoryTriad)]
    }

    /// Wake-ups on one processor and between two, and timers, alone and on all processors at once.
    fn waiting(&self) -> Vec<Draft> {
        let mut drafts = vec![self.draft(HostKind::Wake, self.first())];
        if let Some(other) = self.processors.get(1) {
            let across = self.draft(HostKind::Wake, self.first());
            drafts.push(Draft { label: "wake-across".to_owned(), wake_on: Some(*other), ..across });
        }
        drafts.push(self.draft(HostKind::Timer, self.first()));
        if self.processors.len() > 1 {
            drafts.push(self.draft(HostKind::Timer, self.processors));
        }
        drafts
    }

    /// Memory that lies behind all caches, as far as there is so much.
    fn large(&self) -> Bytes {
        if let Some(size) = self.request.load.size_bytes {
            return size;
        }
        let caches = self.facts.topology.as_ref().map_or(&[][..], |topology| &topology.caches);
        let largest = caches.iter().map(|cache| cache.bytes).max().unwrap_or(0);
        let wanted = Bytes(largest.saturating_mul(TIMES_CACHE)).max(BEHIND_CACHES);
        match self.facts.available_memory {
            Some(available) => wanted.min(Bytes((available.0 / SHARE_OF_FREE).max(MIN_OF_THREAD.0))),
            None => wanted,
        }
    }
}
