//! The words of what is found on a network, for those who run databases.

use super::{
    CountedLoss, NetworkBurst, NetworkCause, NetworkFinding, NetworkSeen, NetworkStop, NoProcessor, direction, rate,
};
use crate::message::list;
use crate::{Message, Rule};
use model::record::NetworkSide;
use model::units::{Bytes, Nanos, group_thousands};

/// Bytes in the unit that people would say.
fn size(bytes: f64) -> String {
    match bytes {
        bytes if bytes >= 1e9 => format!("{:.1} GB", bytes / 1e9),
        bytes if bytes >= 10e6 => format!("{:.0} MB", bytes / 1e6),
        bytes if bytes >= 1e6 => format!("{:.1} MB", bytes / 1e6),
        bytes => format!("{:.0} KB", bytes / 1e3),
    }
}

fn whole_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A share of which a hundredth of a percent matters, in percent.
fn small_percent(share: f64) -> String {
    format!("{:.2}", share * 100.0)
}

fn other(side: NetworkSide) -> NetworkSide {
    match side {
        NetworkSide::Client => NetworkSide::Server,
        NetworkSide::Server => NetworkSide::Client,
    }
}

impl NoProcessor {
    fn words(&self) -> String {
        if self.is_throttled() {
            return format!(
                "its control group's limit kept it from running for {} of the time",
                whole_percent(self.throttled)
            );
        }
        if self.running + self.waiting < 0.9
            && let Some((number, busy, interrupts)) = self.interrupts
        {
            let (busy, interrupts) = (whole_percent(busy), whole_percent(interrupts));
            return format!("processor {number} was busy for {busy} of the time, {interrupts} in soft interrupts");
        }
        let running = format!("its busiest thread ran for {} of the time", whole_percent(self.running));
        if self.is_taken() {
            format!("{running} and waited for a processor for {}", whole_percent(self.waiting))
        } else {
            running
        }
    }

    fn advice(&self, side: NetworkSide) -> String {
        let name = side.name();
        if self.is_throttled() {
            return format!(
                "Raise the limit on processor time of the {name}'s control group or container, or put the database elsewhere."
            );
        }
        if self.is_taken() {
            return match self.by_others {
                Some(true) => {
                    format!(
                        "Something else uses the {name}'s processors: look at what (top), and try again without it."
                    )
                }
                Some(false) => {
                    format!("The {name}'s own threads share its processors: use fewer connections, or more processors.")
                }
                None => format!("See what uses the {name}'s processors: other programs, or its own threads (top)."),
            };
        }
        match self.interrupts {
            Some(_) => format!(
                "One processor of the {name} takes all packets: spread interrupts over queues (ethtool -L, irqbalance, receive \
                 packet steering), or use several connections."
            ),
            None => {
                "One CPU serves a connection at each end: use several connections (flows), as several redo transport \
                 or parallel backup streams do. Larger packets (jumbo frames) cost less per byte."
                    .to_owned()
            }
        }
    }
}

impl NetworkBurst {
    fn words(&self) -> String {
        format!(
            "a token bucket: {} for {}, then {}; the credit was {} at least",
            rate(self.burst_bits_per_s),
            self.after,
            rate(self.base_bits_per_s),
            size(self.credit_bytes)
        )
    }
}

impl NetworkStop {
    /// What stopped it, in the few words of a table.
    pub fn name(&self) -> String {
        let end = |side: NetworkSide| side.name();
        match &self.cause {
            NetworkCause::SenderProcessor(_) => format!("processor of the {}", end(self.from)),
            NetworkCause::ReceiverProcessor(_) => format!("processor of the {}", end(other(self.from))),
            NetworkCause::SlowReceiver { .. } => format!("slow program on the {}", end(other(self.from))),
            NetworkCause::ReceiveWindow { .. } => "receive window".to_owned(),
            NetworkCause::SendBuffer { .. } => "send buffer".to_owned(),
            NetworkCause::BlackHole { .. } => "MTU black hole".to_owned(),
            NetworkCause::TokenBucket(_) => "token bucket".to_owned(),
            NetworkCause::Shaper { .. } => "shaper or slower link".to_owned(),
            NetworkCause::Policer { .. } => "policer".to_owned(),
            NetworkCause::Loss { .. } => "loss".to_owned(),
            NetworkCause::Interface { side, .. } => format!("interface of the {}", end(*side)),
        }
    }

    /// What stopped it, for the middle of a sentence: `the server's processor, …`.
    pub fn words(&self) -> String {
        let (sender, receiver) = (self.from.name(), other(self.from).name());
        match &self.cause {
            NetworkCause::SenderProcessor(lack) => {
                format!("the processor of the {sender}, which sends: {}", lack.words())
            }
            NetworkCause::ReceiverProcessor(lack) => {
                format!("the processor of the {receiver}, which receives: {}", lack.words())
            }
            NetworkCause::SlowReceiver { share, unread_bytes } => format!(
                "the program on the {receiver}, which reads too slowly: {} waited for it, and its window held the \
                 {sender} back for {} of the time",
                size(*unread_bytes),
                whole_percent(*share)
            ),
            NetworkCause::ReceiveWindow { share, window_bytes, round_trip } => format!(
                "the receive window of the {receiver}: {} for a round trip of {round_trip} held the {sender} back for {} of \
                 the time",
                size(*window_bytes),
                whole_percent(*share)
            ),
            NetworkCause::SendBuffer { share, buffer_bytes, round_trip } => {
                let buffer = buffer_bytes.map_or_else(String::new, |bytes| format!(" of {}", Bytes(bytes)));
                // The kernel books next to nothing where the buffer is filled again as soon as it has room.
                let how = match *share < 0.03 {
                    true => "rate × round trip fills it".to_owned(),
                    false => format!("it was what held back for {} of the time", whole_percent(*share)),
                };
                format!("the send buffer{buffer} of the {sender} for a round trip of {round_trip}: {how}")
            }
            NetworkCause::BlackHole { packet_bytes } => {
                let packet = packet_bytes.map_or_else(String::new, |bytes| format!(" of {bytes} bytes"));
                format!(
                    "a path that drops packets{packet} without a word (an MTU black hole): connections are made, and nothing large comes through"
                )
            }
            NetworkCause::TokenBucket(burst) => burst.words(),
            NetworkCause::Shaper { round_trip, least } => format!(
                "a shaper or a slower link on the way, which queues packets at this rate: the round trip was \
                 {round_trip} instead of {least}"
            ),
            NetworkCause::Policer { resent, round_trip } => format!(
                "a policer on the way, which drops what exceeds this rate: {} % of bytes were sent again, and the \
                 round trip stayed at {round_trip}",
                small_percent(*resent)
            ),
            NetworkCause::Loss { resent, window_segments } => format!(
                "lost packets, which keep the congestion window at {} segments: {} % of bytes were sent again",
                group_thousands(*window_segments),
                small_percent(*resent)
            ),
            NetworkCause::Interface { side, mbit_per_s } => {
                format!("the interface of the {}, which has {}", side.name(), rate(*mbit_per_s as f64 * 1e6))
            }
        }
    }

    pub(super) fn advice(&self) -> String {
        if self.is_one_host {
            return "Both ends share the processors of this host: measure between two hosts.".to_owned();
        }
        let (sender, receiver) = (self.from, other(self.from));
        match &self.cause {
            NetworkCause::SenderProcessor(lack) => lack.advice(sender),
            NetworkCause::ReceiverProcessor(lack) => lack.advice(receiver),
            NetworkCause::SlowReceiver { .. } => {
                "The network has more to give. Of a standby this is its apply or its writing of redo; of a backup its tape or disk."
                    .to_owned()
            }
            NetworkCause::ReceiveWindow { round_trip, .. } => format!(
                "Raise net.ipv4.tcp_rmem and net.core.rmem_max on the {} (and RECV_BUF_SIZE of Oracle Net, if it is \
                 set). The window must be rate × round trip, {} for 1 Gbit/s here.",
                receiver.name(),
                size(125e6 * round_trip.0 as f64 / 1e9)
            ),
            NetworkCause::SendBuffer { round_trip, .. } => format!(
                "Raise net.ipv4.tcp_wmem and net.core.wmem_max on the {} (and SEND_BUF_SIZE of Oracle Net, if it is \
                 set), or leave the buffer to the kernel. It must hold rate × round trip, {} for 1 Gbit/s here.",
                sender.name(),
                size(125e6 * round_trip.0 as f64 / 1e9)
            ),
            NetworkCause::BlackHole { .. } => {
                "Set the MTU of both interfaces to that of the path (ip link set … mtu). Or let ICMP \"fragmentation \
                 needed\" through, or set net.ipv4.tcp_mtu_probing=1 on both ends."
                    .to_owned()
            }
            NetworkCause::TokenBucket(burst) => format!(
                "Plan with {}: what a short test sees is credit. Backups, copies to a standby and loads use it up; clouds sell it \
                 as bandwidth \"up to\".",
                rate(burst.base_bits_per_s)
            ),
            NetworkCause::Shaper { .. } => {
                "Ask who set this rate: the size of the cloud machine, the hypervisor, a firewall, traffic shaping of the site. \
                 Redo that is sent beside bulk data waits in the same queue: give it a queue of its own, or limit the bulk."
                    .to_owned()
            }
            NetworkCause::Policer { .. } => {
                "Ask who set this rate: the size of the cloud machine, a firewall, a contract with a provider. A shaper instead of \
                 a policer, or fq and bbr at the sender (net.ipv4.tcp_congestion_control), lose less."
                    .to_owned()
            }
            NetworkCause::Loss { .. } => {
                "Look for what loses them: errors and drops of interfaces (ethtool -S), switches, a duplex mismatch, a busy \
                 hypervisor. The more round trip, the more each loss costs."
                    .to_owned()
            }
            NetworkCause::Interface { .. } => "Nothing is wrong: more needs a faster interface, or several.".to_owned(),
        }
    }
}

impl Message for NetworkFinding {
    fn rule(&self) -> Rule {
        match self {
            Self::Stop(_) => Rule::NetworkStop,
            Self::SlowLink(_) => Rule::NetworkSlowLink,
            Self::Seen(NetworkSeen::OneFlow { .. }) => Rule::NetworkOneFlow,
            Self::Seen(_) => Rule::NetworkSeen,
            Self::Survey { .. } => Rule::NetworkSurvey,
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Stop(stop) => {
                let flows = if stop.flows == 1 { "one flow".to_owned() } else { format!("{} flows", stop.flows) };
                let (least, most) = (rate(stop.bits_per_s), rate(stop.most_bits_per_s));
                let rates = if least == most { least } else { format!("{least} to {most}") };
                format!(
                    "{rates} {} with {flows} (in {}), stopped by {}.",
                    direction(stop.from, stop.server.as_deref()),
                    list(&stop.steps),
                    stop.words()
                )
            }
            Self::SlowLink(slow) => format!("A slow link: {} (in {}).", slow.words(), slow.step),
            Self::Seen(seen) => seen.sentence(),
            Self::Survey { answer } => answer.clone(),
        }
    }

    fn advice(&self) -> Option<String> {
        match self {
            Self::Stop(stop) => Some(stop.advice()),
            Self::SlowLink(_) => Some(
                "Look at what only this link has: switch port, cable, interface speed (ethtool), route, tunnel, \
                 machine size. Look also at what stops it, if the report names that."
                    .to_owned(),
            ),
            Self::Seen(seen) => seen.advice(),
            Self::Survey { .. } => None,
        }
    }
}

impl NetworkSeen {
    fn sentence(&self) -> String {
        match self {
            Self::Bloat { steps, round_trip, least } => {
                format!("Bulk data makes the round trip {round_trip} instead of {least} (in {}).", list(steps))
            }
            Self::Resent { steps, side, share } => {
                let (side, share) = (side.name(), small_percent(*share));
                format!("The {side} sent up to {share} % of its bytes again (in {}).", list(steps))
            }
            Self::PathMtu { side, path_bytes, interface_bytes } => format!(
                "The path passes packets of {path_bytes} bytes, the interface of the {} {interface_bytes}.",
                side.name()
            ),
            Self::Counted { steps, side, why, name, count } => {
                let what = match why {
                    CountedLoss::Reassembly => "datagrams of several packets were incomplete and dropped",
                    CountedLoss::UdpBuffer => {
                        "datagrams were dropped because the program did not read its socket in \
                         time"
                    }
                    CountedLoss::Listen => "connections were dropped because the program did not accept them in time",
                    CountedLoss::Backlog => "packets were dropped since a processor did not take them in time",
                    CountedLoss::Allowance => {
                        "packets were queued or dropped since the machine's allowance was used up"
                    }
                };
                let count = group_thousands(*count as f64);
                format!("On the {}, {count} {what} ({name}, in {}).", side.name(), list(steps))
            }
            Self::Datagrams { steps, asked, lost, late, reordered, duplicated, fragments } => {
                let count = |count: &u64| group_thousands(*count as f64);
                let share = small_percent(*lost as f64 / (*asked).max(1) as f64);
                let fragments = fragments.map_or_else(String::new, |all| {
                    format!("; fragments that the client's kernel received: {}", count(&all))
                });
                format!(
                    "Of {} blocks requested over UDP, {} were lost ({share} %), of which {} came too late. {} came \
                     out of order, {} twice{fragments} (in {}).",
                    count(asked),
                    count(lost),
                    count(late),
                    count(reordered),
                    count(duplicated),
                    list(steps)
                )
            }
            Self::OneFlow { one, one_bits_per_s, several, flows, several_bits_per_s, like } => {
                let published =
                    like.map_or_else(String::new, |(limit, what)| format!("; {limit} Gbit/s are published for {what}"));
                format!(
                    "One flow stops at {} (in {one}) where {flows} come to {} (in {several}): a limit of each flow{published}.",
                    rate(*one_bits_per_s),
                    rate(*several_bits_per_s)
                )
            }
        }
    }

    fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::Bloat { round_trip, least, .. } => format!(
                "A commit that waits for a standby takes {} longer beside such a load. Limit backups and copies below the rate of the \
                 path, or give redo a queue of its own.",
                Nanos(round_trip.0.saturating_sub(least.0))
            ),
            Self::Resent { .. } => {
                "Each loss makes a commit that waits for an acknowledgement wait for another round trip, and 200 ms where it was \
                 the last packet. Look at errors and drops of interfaces and switches."
                    .to_owned()
            }
            Self::PathMtu { .. } => {
                "Something between sends smaller packets on (a tunnel, a VPN, a provider). Allow jumbo frames on \
                 every hop. Otherwise give the interface the path's MTU, so that datagrams are not fragmented."
                    .to_owned()
            }
            Self::Counted { why, .. } => match why {
                CountedLoss::Reassembly => {
                    "A cluster's interconnect over UDP loses blocks in this way, and requests them again. Use jumbo \
                     frames end to end, and raise net.ipv4.ipfrag_high_thresh."
                }
                CountedLoss::UdpBuffer => "Raise net.core.rmem_max and net.core.rmem_default, and the program's socket buffer.",
                CountedLoss::Listen => "Raise net.core.somaxconn and the listener's queue (QUEUESIZE of Oracle Net).",
                CountedLoss::Backlog => {
                    "Raise net.core.netdev_max_backlog, and spread interrupts over processors (irqbalance, receive packet steering)."
                }
                CountedLoss::Allowance => "A larger machine has a larger allowance; fewer, larger packets need less of one that counts packets.",
            }
            .to_owned(),
            Self::OneFlow { .. } => {
                "Send over several connections: redo transport and data pumps have settings for it, backups have channels. Each \
                 connection is held by itself, by a cloud, by one queue or by one link of several."
                    .to_owned()
            }
            Self::Datagrams { lost: 0, .. } => return None,
            Self::Datagrams { .. } => {
                "A database asks for a lost block again only after a time-out. Jumbo frames end to end need fewer packets for each \
                 block, and larger socket buffers lose fewer that have come."
                    .to_owned()
            }
        };
        Some(advice)
    }
}
