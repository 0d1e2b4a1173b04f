#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstalk_fuzz_properties::trust(data));
