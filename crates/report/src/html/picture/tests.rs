use quick_xml::Reader;
use quick_xml::events::Event;

use super::{Font, Shape, WIDTH, *};
use crate::html::is_ours;
use analysis;
use model::record::sample;

fn picture_of(run: &Run) -> Option<Picture> {
    let findings = analysis::analyse_asked(run, None);
    Picture::of_run(&Reported::new(run, &findings))
}

/// All texts of a drawing, in its order.
fn texts(picture: &Picture) -> Vec<&str> {
    picture.0.shapes.iter().filter_map(text_of).collect()
}

fn text_of(shape: &Shape) -> Option<&str> {
    if let Shape::Text { text, .. } = shape { Some(text) } else { None }
}

fn has(picture: &Picture, wanted: &str) -> bool {
    texts(picture).iter().any(|text| text.contains(wanted))
}

#[test]
fn a_sweep_shows_its_answer_the_limit_and_every_step() {
    let run = sample::sweep(20);
    let picture = picture_of(&run).unwrap();
    for wanted in
        [run.id.as_str(), "limit 5", "physical reads/s (layer: engine)", "p99", " ms", "layer: engine", "plimsoll "]
    {
        assert!(has(&picture, wanted), "no `{wanted}` in {:?}", texts(&picture));
    }
    for step in &run.steps {
        assert!(texts(&picture).contains(&step.label.as_str()), "no {} in {:?}", step.label, texts(&picture));
    }
    let answer = FirstScreen::of(&run, &analysis::analyse_asked(&run, None)).headline().replace('`', "");
    let words = texts(&picture)[1..].join(" ");
    assert!(words.starts_with(&answer), "{words}");
}

#[test]
fn one_step_shows_the_histogram_of_what_it_is_judged_by_with_the_figure_reached() {
    let mut run = sample::sweep(20);
    run.steps.truncate(1);
    let picture = picture_of(&run).unwrap();
    for wanted in ["db file sequential read", "<1ms", "% of waits", "p99 ", " %"] {
        assert!(has(&picture, wanted), "no `{wanted}` in {:?}", texts(&picture));
    }
    run.steps[0].waits.clear();
    run.steps[0].operations.clear();
    assert!(picture_of(&run).is_none(), "nothing was timed, and something is drawn");
}

#[test]
fn runs_that_are_compared_are_drawn_over_each_other() {
    let (old, mut new) = (sample::sweep(20), sample::sweep(30));
    new.id = "20261121-103000-slob".to_owned();
    let runs = [&old, &new];
    let picture = Picture::of_comparison(&Compared::of(&runs, 0, 0.05).unwrap(), &runs).unwrap();
    assert!(has(&picture, &new.id) && has(&picture, "physical reads/s"), "{:?}", texts(&picture));
    let singles = runs.map(|run| {
        let mut run = run.clone();
        run.steps.truncate(1);
        run
    });
    let runs = [&singles[0], &singles[1]];
    let picture = Picture::of_comparison(&Compared::of(&runs, 0, 0.05).unwrap(), &runs).unwrap();
    assert!(has(&picture, "Histogram at") && has(&picture, "% of reads"), "{:?}", texts(&picture));
}

#[test]
fn no_text_reaches_over_the_edge_however_long_names_are() {
    let mut run = sample::sweep(20);
    run.name = "a_name_that_nobody_can_read_at_once_".repeat(20);
    run.target.address = "/dev/mapper/".repeat(40);
    let font = Font::new();
    let picture = picture_of(&run).unwrap();
    for shape in &picture.0.shapes {
        let Shape::Text { at: (x, y), size, anchor, text, .. } = shape else { continue };
        let width = font.width(text, *size);
        let left = match anchor {
            Anchor::Start => *x,
            Anchor::Middle => x - width / 2.0,
            Anchor::End => x - width,
        };
        assert!(left >= 0.0 && left + width <= WIDTH && *y < picture.0.height, "{text} at {left}, {y}");
    }
}

#[test]
fn svg_is_whole_loads_nothing_and_no_name_becomes_markup() {
    let mut run = sample::sweep(20);
    run.name = "</text><script>alert(1)</script> & \u{1} \u{fffe}".to_owned();
    let svg = picture_of(&run).unwrap().svg();
    let mut reader = Reader::from_str(&svg);
    let mut elements = Vec::new();
    loop {
        match reader.read_event().unwrap() {
            Event::Start(element) => elements.push(element.name().as_ref().to_owned()),
            Event::Eof => break,
            _ => {}
        }
    }
    assert!(elements[0] == "svg" && elements.iter().all(|name| name != "script"), "{elements:?}");
    assert!(!svg.contains("\u{1}") && !svg.contains('\u{fffe}') && !svg.contains("href") && !svg.contains("url("));
    assert_eq!(svg.matches("://").count(), 1, "only the name space is an address");
    assert!(is_ours(&svg) && !is_ours("<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>"));
}

#[test]
fn png_has_two_pixels_for_one_and_is_drawn_with_its_letters() {
    let picture = picture_of(&sample::sweep(20)).unwrap();
    let file = picture.png().unwrap();
    assert!(is_ours(&String::from_utf8_lossy(&file[..200])) && !is_ours("\u{fffd}PNG\r\n"));
    let mut reader = ::png::Decoder::new(io::Cursor::new(&file)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, f64::from(info.height)), (1_800, picture.0.height * 2.0));
    let is = |pixel: &[u8], Ink(colour): Ink| pixel == colour;
    let rows: Vec<&[u8]> = pixels.chunks(1_800 * 3).collect();
    let inked = |rows: &[&[u8]], ink| rows.iter().flat_map(|row| row.chunks(3)).filter(|pixel| is(pixel, ink)).count();
    assert!(inked(&rows, Ink::GROUND) > inked(&rows, Ink::TEXT) * 10, "the ground is light");
    // The title stands in the first rows, and nothing else does.
    assert!(inked(&rows[40..100], Ink::TEXT) > 500, "the title is not drawn");
    let limit = rows.iter().map(|row| row.chunks(3).filter(|pixel| is(pixel, Ink::LIMIT)).count()).max();
    assert!(limit.unwrap() > 1_000, "no limit goes across");
}
