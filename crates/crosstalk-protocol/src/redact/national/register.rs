//! The numbers that are known, with the words that have to stand near those whose check is weak.

use super::check;
use super::form::Form;

const fn form(
    pattern: &'static str,
    check: fn(&[u8]) -> bool,
    labels: &'static [&'static str],
) -> Form {
    Form {
        pattern,
        check,
        labels,
    }
}

const UNITED_STATES: &[&str] = &["ssn", "social security", "itin", "taxpayer"];
const GERMANY: &[&str] = &[
    "steuer-id",
    "steuerid",
    "steuer-idnr",
    "steuer-identifikationsnummer",
    "steueridentifikationsnummer",
    "idnr",
    "id-nr",
    "tax id",
    "tin",
];
const SWEDEN: &[&str] = &["personnummer", "samordningsnummer", "personnr", "pnr"];
const DENMARK: &[&str] = &["cpr", "cpr-nummer", "cpr-nr", "personnummer"];

#[rustfmt::skip]
pub(super) const FORMS: &[Form] = &[
    form("ddd-dd-dddd", check::united_states, &[]),
    form("ddd dd dddd", check::united_states, UNITED_STATES),
    form("ddddddddd", check::united_states, UNITED_STATES),
    form("uu_dd_dd_dd_u", check::britain, &[]),
    form("ll_dd_dd_dd_l", check::britain, &["nino", "national insurance", "ni number", "ni no"]),
    form("dd ddd ddd ddd", check::germany, &[]),
    form("ddddddddddd", check::germany, GERMANY),
    form("d_dd_dd_aa_ddd_ddd_dd", check::france, &[]),
    form("dddddddd_u", check::spain, &[]),
    form("dddddddd_l", check::spain, &["dni", "nif"]),
    form("u_ddddddd_u", check::spain_foreign, &[]),
    form("l_ddddddd_l", check::spain_foreign, &["nie"]),
    form("lll_lll_aalaa_laaal", check::italy, &[]),
    form("ddddddddd", check::netherlands, &["bsn", "burgerservicenummer", "sofinummer", "sofi"]),
    form("dddd.dd.ddd", check::netherlands, &["bsn", "burgerservicenummer", "sofinummer", "sofi"]),
    form("dddddd-dddd", check::sweden, &[]),
    form("dddddd+dddd", check::sweden, &[]),
    form("dddddddd-dddd", check::sweden, &[]),
    form("dddddddddd", check::sweden, SWEDEN),
    form("dddddddddddd", check::sweden, SWEDEN),
    form("ddddddcddda", check::finland, &[]),
    form("dddddd-dddd", check::denmark, DENMARK),
    form("dddddddddd", check::denmark, DENMARK),
    form("dddddd_ddddd", check::norway, &[]),
    form("ddddddddddd", check::poland, &["pesel"]),
    form("ddd_dddd_dddd_dd", check::switzerland, &[]),
    form("ddd.ddd.ddd-dd", check::brazil, &[]),
    form("ddddddddddd", check::brazil, &["cpf"]),
    form("dddd_dddd_dddd", check::india, &["aadhaar", "aadhar", "uidai"]),
    form("ddd_ddd_ddd", check::canada, &["social insurance", "sin:", "sin number", "sin no", "sin #"]),
    form("dd.dd.dd-ddd.dd", check::belgium, &[]),
    form("ddddddddddd", check::belgium, &["rijksregister", "rijksregisternummer", "numéro national", "nrn", "insz", "niss"]),
    form("dddddd/dddd", check::czechia, &[]),
    form("ddddddddddddd", check::romania, &["cnp"]),
    form("ddddddddddd", check::turkey, &["tckn", "kimlik", "tc no", "tc kimlik"]),
    form("ddddddddddddddddda", check::china, &[]),
    form("dddddd-ddddddd", check::korea, &[]),
    form("udddddddu", check::singapore, &[]),
    form("ddddddddddddd", check::south_africa, &["id number", "rsa id", "sa id", "identity number"]),
    form("ddd_ddd_ddd", check::australia, &["tfn", "tax file"]),
    form("dddddddl", check::ireland, &["pps", "ppsn"]),
    form("dddddddll", check::ireland, &["pps", "ppsn"]),
    form("ddddddddd", check::portugal, &["nif", "contribuinte"]),
    form("ddd_ddd_ddd", check::portugal, &["nif", "contribuinte"]),
    form("dddd_dddddd", check::austria, &["svnr", "sv-nummer", "sozialversicherungsnummer"]),
    form("ddddddddddd", check::croatia, &["oib"]),
];
