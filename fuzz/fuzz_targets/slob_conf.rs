//! Any bytes as a `slob.conf`: reading never panics, and what was read survives being written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll::config::{ConfigError, SlobParameters, slob_conf};

fn parameters(text: &str) -> Result<SlobParameters, ConfigError> {
    SlobParameters::from_settings(&slob_conf::parse(text, "slob.conf")?)
}

fuzz_target!(|bytes: &[u8]| {
    match parameters(&String::from_utf8_lossy(bytes)) {
        Ok(first) => {
            let written = slob_conf::render(&first.to_map());
            let again = parameters(&written).expect("what was written can be read");
            assert_eq!(first.to_map(), again.to_map(), "{written}");
            let _ = (first.notes(), first.check_against(10_240, 8_192));
        }
        Err(error) => {
            let _ = (error.to_string(), error.hint());
        }
    }
});
