//! One spelling for what people spell differently: forms, diacritics and case.
//!
//! Full-width letters, ligatures, circled digits and the like become what they stand for (NFKC of Unicode Annex 15), marks
//! that a reader may leave out are left out (`canción` and `cancion`, points and vowel signs of Hebrew and Arabic), and case
//! goes. Marks that make another letter stay: vowel signs of Indic scripts, the voicing of kana, the parts of Hangul. What
//! shows nothing (joiners, variation selectors, soft hyphens) and the skin tone of an emoji go too.

use std::borrow::Cow;
use unicode_normalization::char::{decompose_compatible, is_combining_mark};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// In one form and without diacritics, in the case it came in: parts of identifiers are found by their case.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for symbol in text.chars() {
        if symbol.is_ascii() {
            plain.push(symbol);
        } else {
            decompose_compatible(symbol, |part| push_plain(part, &mut plain));
        }
    }
    if is_nfc_quick(plain.chars()) == IsNormalized::Yes {
        Cow::Owned(plain)
    } else {
        Cow::Owned(plain.nfc().collect())
    }
}

/// As [`plain`], and without case: what a substring is looked for in.
pub(super) fn folded(text: &str) -> String {
    let plain = plain(text);
    if plain.is_ascii() {
        return plain.to_ascii_lowercase();
    }
    let mut folded = String::with_capacity(plain.len());
    plain.chars().for_each(|symbol| push_folded(symbol, &mut folded));
    folded
}

/// Upper case first: `ß` and `SS`, `σ` and `ς`, `ı` and `I` meet there, and lower case alone keeps them apart.
pub(super) fn push_folded(symbol: char, out: &mut String) {
    if symbol.is_ascii() {
        out.push(symbol.to_ascii_lowercase());
    } else {
        out.extend(symbol.to_uppercase().flat_map(char::to_lowercase));
    }
}

fn push_plain(symbol: char, out: &mut String) {
    match symbol {
        '\u{ad}'
        | '\u{640}'
        | '\u{200c}'
        | '\u{200d}'
        | '\u{2060}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' => {}
        '\u{1f3fb}'..='\u{1f3ff}' => {}
        // A stroke is part of its letter, so Unicode does not take it off; people leave it out nevertheless.
        'Ø' => out.push('O'),
        'ø' => out.push('o'),
        'Ł' => out.push('L'),
        'ł' => out.push('l'),
        'Đ' | 'Ð' => out.push('D'),
        'đ' | 'ð' => out.push('d'),
        'Ħ' => out.push('H'),
        'ħ' => out.push('h'),
        'Æ' => out.push_str("AE"),
        'æ' => out.push_str("ae"),
        'Œ' => out.push_str("OE"),
        'œ' => out.push_str("oe"),
        _ if is_diacritic(symbol) => {}
        _ => out.push(symbol),
    }
}

fn is_diacritic(symbol: char) -> bool {
    matches!(symbol,
        '\u{300}'..='\u{36f}'
        | '\u{483}'..='\u{489}'
        | '\u{591}'..='\u{5c7}'
        | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}'
        | '\u{670}'
        | '\u{6d6}'..='\u{6ed}'
        | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{fe20}'..='\u{fe2f}')
        && is_combining_mark(symbol)
}
