//! What is planted at an NFS server, below it and on the way to it.

use crate::ganesha::Ganesha;
use crate::group::Counted;
use crate::planting::{Bound, NEAR, Shaper, drop_page_cache};
use crate::screen::Cause;
use crate::skip::skip;
use crate::{Cell, OTHERS, Way, is_torture, with_place};

const SINGLE: &str = "io run --pattern randread --depth 32 --duration 8 --size 256M --quiet --path";
const SWEEP: &str = "io sweep --pattern randread --depth 2,16,64 --duration 4 --warmup 1 --size 256M --quiet --path";

#[test]
fn on_nfs() {
    if !is_torture() {
        return skip("nothing was planted at an NFS server: `make torture` does that");
    }
    with_place("an NFS server", |place, table| {
        let Some(server) = Ganesha::start_on("0.0.0.0") else { return };
        let url = server.url("data", "");
        let words =
            |words: &str, url: &str| -> Vec<String> { words.split(' ').chain([url]).map(str::to_owned).collect() };
        let made = words("io run --pattern randread --duration 1 --size 256M --quiet --path", &url);
        place.done(&made.iter().map(String::as_str).collect::<Vec<_>>());
        let mut judge = |planted, right, beside, url: &str, shaper: Option<&Shaper>| {
            for (way, command) in [(Way::Single, SINGLE), (Way::Sweep, SWEEP)] {
                let words = words(command, url);
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let cell = Cell { planted, on: "NFS", way, right, beside };
                place.judge(table, &cell, || {
                    let command = place.command(&words, false);
                    shaper.map_or_else(|| place.command(&words, false), |shaper| shaper.inside(command))
                });
            }
        };
        let busy = &[Cause::Beyond, Cause::Processors, Cause::Generator, Cause::OtherPrograms];
        judge("nothing", &[], busy, &url, None);
        match Bound::processors(0.2).and_then(|quota| quota.holding(&[server.pid()])) {
            Ok(_quota) => judge("a quota of 0.2 processors", &[Cause::Beyond, Cause::Limit], &[], &url, None),
            Err(why) => skip(format_args!("no quota was planted: {why}")),
        }
        match Shaper::start("50mbit") {
            Ok(shaper) => {
                let url = url.replace("127.0.0.1", NEAR);
                judge("a shaper of 50 Mbit/s", &[Cause::Beyond, Cause::Limit], &[], &url, Some(&shaper));
            }
            Err(why) => skip(format_args!("no shaper was planted: {why}")),
        }
        match Bound::memory(64 << 20).and_then(|memory| memory.holding(&[server.pid()])) {
            Ok(_memory) => {
                // What filled the file is not of the group: its pages go.
                drop_page_cache();
                place.group.enter(&[server.pid()]);
                place.group.limit(Counted::Requests, 800);
                let right = &[Cause::Beyond, Cause::ServerStorage, Cause::Limit, Cause::LimitOrDevice];
                judge("800 reads/s below it", right, OTHERS, &url, None);
                place.group.limit(Counted::Requests, 0);
            }
            Err(why) => skip(format_args!("no memory was limited: {why}")),
        }
    });
}
