//! What needs an NFS server and is refused without one.

use crate::errors::refused;
use crate::place::Place;

fn said(place: &Place, words: &str) -> String {
    refused(place, &words.split(' ').collect::<Vec<_>>())
}

#[test]
fn connections_of_what_has_none_are_refused_with_advice() {
    let place = Place::on_disk();
    let sweep = "io sweep --pattern randread --connections";
    for (rest, what, hint) in [
        ("1,2 --path new --size 1M", "`new` is reached through the kernel", "nconnect"),
        ("1,2 --path sim:", "simulated storage has none", "nfs://SERVER/EXPORT/FILE"),
        ("1,2 --group data=external,size=64M:new", "a disk group is its members'", "connections=N"),
        (
            "1,2 --path nfs://filer1/vol/f?connections=4",
            "`nfs://filer1/vol/f?connections=4` says how many connections",
            "leave one out",
        ),
        ("1,2 --path nfs://filer1/vol/f --depth 4,8", "connections are compared at one depth", "give one `--depth`"),
        ("1,1 --path nfs://filer1/vol/f", "1 is listed twice among the connections", "give each number once"),
        ("0 --path nfs://filer1/vol/f", "`0` is not a number of connections", "1,2,4,8"),
        ("1,2 --path nfs://filer1/vol/f --rate 100", "cannot be used with", ""),
        ("1,2 --path nfs://filer1/vol/f --path nfs://filer1/vol/g --together --depth 8", "cannot be used with", ""),
        ("1,2 --path nfs://filer1/vol/f --rounds 0", "`--rounds 0` is not a number of rounds", "even number"),
    ] {
        let reported = said(&place, &format!("{sweep} {rest}"));
        assert!(reported.contains(what) && reported.contains(hint), "{reported}");
    }
}

#[test]
fn clients_that_are_none_are_refused_with_advice() {
    let place = Place::on_disk();
    let compare = "io compare-nfs --size 1M";
    for (rest, what, hint) in [
        (
            "--kernel nfs://filer1/vol/f --direct nfs://filer1/vol/f",
            "is not a path of this machine",
            "/mnt/vol/test.dat",
        ),
        (
            "--kernel new --direct new",
            "`--direct new` is not an address of a file on an NFS server",
            "nfs://SERVER/EXPORT/FILE",
        ),
        ("--kernel new --direct nfs://", "`nfs://`: ", "nfs://SERVER/EXPORT/FILE"),
        ("--kernel sim: --direct nfs://filer1/vol/f", "is not a path of this machine", ""),
        ("--kernel new --direct nfs://filer1/vol/f --repeats 0", "`--repeats 0` is not a number", "leave it out"),
        ("--kernel new --direct nfs://filer1/vol/f --threads 1,1", "depth 1 is listed twice", ""),
        ("--kernel new --direct nfs://filer1/vol/f -o new.txt", "no file of this kind is written", ""),
    ] {
        let reported = said(&place, &format!("{compare} {rest}"));
        assert!(reported.contains(what) && reported.contains(hint), "{reported}");
    }
}
