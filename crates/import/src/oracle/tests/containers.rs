//! Reports on a whole database and on its pluggable ones, which bear the same number and name.

use super::specimens::{page, single_12, table};
use super::*;

/// A report under a heading that lists these containers.
fn listing(heading: &str, rows: &str) -> Draft {
    let containers = table(&format!("Container DB Id|Container Name|Open Time\n{rows}"));
    let text = single_12().replacen("WORKLOAD REPOSITORY report for", heading, 1).replacen(
        "<h3 class=\"awr\">Report Summary",
        &format!("{containers}<h3 class=\"awr\">Report Summary"),
        1,
    );
    read(&text)
}

fn containers(draft: &Draft) -> String {
    draft.target.facts.database.containers.join(", ")
}

const WHOLE: &str = "WORKLOAD REPOSITORY report for";
const FROM_ROOT: &str = "WORKLOAD REPOSITORY PDB report (root snapshots)";
const FROM_PDB: &str = "WORKLOAD REPOSITORY PDB report (PDB snapshots)";

#[test]
fn a_pluggable_database_is_named_alone_and_a_whole_one_with_all_of_its_containers() {
    let all = listing(WHOLE, "11|CDB$ROOT|02-May-21 06:30\n12|PDB$SEED|02-May-21 06:30\n13|SALES|02-May-21 06:31");
    assert_eq!(containers(&all), "CDB$ROOT, PDB$SEED, SALES");
    for heading in [FROM_ROOT, FROM_PDB] {
        let one = listing(heading, "13|SALES|02-May-21 06:31");
        let is_unnamed = one.notes.iter().any(|note| note.contains("does not name"));
        assert_eq!((containers(&one).as_str(), is_unnamed), ("SALES", false), "{heading}");
    }
    assert_eq!(containers(&read(&single_12())), "");
}

#[test]
fn names_that_are_blank_or_cut_are_no_other_container() {
    let blank = listing(FROM_ROOT, "|<x|02-May-21 06:31");
    assert_eq!(containers(&blank), "unnamed");
    assert!(blank.notes.iter().any(|note| note.contains("does not name")), "{:?}", blank.notes);
    let without = read(&single_12().replacen(WHOLE, FROM_ROOT, 1));
    assert_eq!(containers(&without), "unnamed", "it has no such table");
    assert_eq!(containers(&listing(FROM_ROOT, "13|<x|02-May-21 06:31")), "13");
    let cut = listing(FROM_ROOT, "13|SALES_OF_THE_NO|02-May-21 06:31");
    assert_eq!(containers(&cut), "SALES_OF_THE_NO (13)", "north or northwest");
    let partly = listing(WHOLE, "||02-May-21 06:30\n13|SALES|02-May-21 06:31");
    assert_eq!(containers(&partly), "unnamed, SALES", "not one pluggable database");
    assert_eq!(containers(&listing(WHOLE, "||02-May-21 06:30")), "");
    let several = listing(FROM_PDB, "13|SALES|02-May-21 06:31\n14|GOODS|02-May-21 06:31");
    assert_eq!(containers(&several), "SALES and GOODS", "not the whole database");
}

#[test]
fn text_and_reports_of_clusters_tell_it_too() {
    let text = "\
WORKLOAD REPOSITORY PDB report (root snapshots)

DB Name         DB Id    Unique Name DB Role          Edition Release    RAC CDB
------------ ----------- ----------- ---------------- ------- ---------- --- ---
SHOP            77000111 shop        PRIMARY          EE      19.0.0.0.0 NO  YES

Instance     Inst Num Startup Time    User Name    System Data Visible
------------ -------- --------------- ------------ --------------------
shop1               1 01-Mar-21 08:00 SELLER       NO

Container DB Id  Container Name       Open Time
--------------- --------------- ---------------
         123456 SALES           01-Mar-21 08:01

              Snap Id      Snap Time      Sessions Curs/Sess
            --------- ------------------- -------- ---------
Begin Snap:        11 01-Mar-21 10:00:01        40        .9
  End Snap:        12 01-Mar-21 11:00:02        41       1.1
   Elapsed:               60.02 (mins)

End of Report
";
    let of_text = |text: &str| {
        let source = Source::new("awr.txt", text.as_bytes().to_vec(), Timestamp(jiff::Timestamp::UNIX_EPOCH)).unwrap();
        let mut drafts = read_text(&source, &mut Notes::new(&source)).unwrap_or_else(|error| panic!("{error}"));
        drafts.pop().unwrap()
    };
    assert_eq!(containers(&of_text(text)), "SALES");
    assert_eq!(containers(&of_text(&text.replace("SALES", "     "))), "123456");
    let cluster = specimens::cluster_19()
        .replacen("WORKLOAD REPOSITORY REPORT (RAC)", "WORKLOAD REPOSITORY PDB REPORT (RAC)", 1)
        .replacen(
            "Cache Sizes",
            &format!("{}Cache Sizes", table("I#|Container DB Id|Container Name\n1|13|SALES\n2|13|SALES")),
            1,
        );
    let cluster = read(&cluster);
    assert_eq!((containers(&cluster).as_str(), cluster.title.as_str()), ("SALES", "DUO snapshots 11-12"));
    let page = page("WORKLOAD REPOSITORY PDB REPORT (RAC)", "<th>DB Id</th>");
    assert!(html::recognises(&page));
}
