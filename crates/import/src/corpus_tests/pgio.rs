use super::{folder, read};
use crate::Source;

#[test]
fn runs() {
    for (file, riops, hits, reads) in [
        ("closson_runit_1.txt", 492_306.0, 8_989.0, 1_767_645_677 - 1_708_568_898),
        ("closson_runit_2.txt", 243_640.0, 5_023.0, 1_796_882_661_u64 - 1_767_645_848),
    ] {
        let Some(drafts) = read("pgio", &format!("pgio/{file}")) else { return };
        let (draft, step) = (&drafts[0], &drafts[0].steps[0]);
        let value_of = |name: &str| step.reported.iter().find(|figure| figure.name == name).unwrap().value;
        assert_eq!((value_of("RIOPS"), value_of("CACHE_HITS/s")), (riops, hits));
        assert_eq!(
            (step.load.schemas, step.load.threads_per_schema, step.load.sessions),
            (Some(16), Some(8), Some(128))
        );
        assert_eq!((step.counters.physical_reads, step.window.duration_ns), (Some(reads), 120_000_000_000));
        assert_eq!((draft.target.block_bytes, draft.target.data_bytes), (Some(8_192), Some(128 << 30)));
        assert!(draft.notes.iter().any(|note| note.contains("page cache")));
    }
}

#[test]
fn loading_tables_is_no_result() {
    let Some(folder) = folder() else { return };
    for file in ["closson_setup_4.txt", "closson_setup_5.txt"] {
        let source = Source::open(&folder.join("pgio").join(file)).unwrap();
        let error = crate::read(&source).unwrap_err().to_string();
        assert!(error.ends_with("it holds no result: pgio loaded its tables"), "{error}");
    }
}
