//! Words as a treebank has them: UD English EWT. The rules and tables are read from its training
//! and development parts.
//!
//! A rule looks at one piece of text alone and says where to cut it. A piece that no rule cuts is a
//! word, so a word that is split again stays as it is, whatever the rules are. Each rule makes all
//! its cuts at once, so that a long piece is looked at only a few times.

use std::ops::Range;

use super::is_mark;

/// In the order in which they are tried; the first that cuts anything counts.
const RULES: [fn(&str) -> Vec<usize>; 6] =
    [lexemes, contraction, endings, unit, full_stop, hyphens_and_slashes];

/// Two words written as one: first words, and the second. Those that are more often a single word
/// (`its`, `id`) are left out.
const CONTRACTIONS: &[(&[&str], &str)] = &[
    (NEGATED, "nt"),
    (&["here", "he", "let", "she", "that", "there", "what"], "s"),
    (&["i"], "m"),
    (&["i", "they", "you"], "ve"),
    (&["they", "you"], "re"),
    (&["it", "they", "you"], "ll"),
    (&["can"], "not"),
    (&["gon", "wan"], "na"),
    (&["got", "out"], "ta"),
    (&["a"], "lot"),
    (&["i'm"], "a"),
    (&["du"], "nno"),
    (&["n"], "no"),
];

const NEGATED: &[&str] = &[
    "ai", "are", "ar", "ca", "could", "did", "does", "do", "had", "has", "have", "is", "should",
    "was", "were", "wo", "would",
];

/// What an apostrophe splits off; `n't` is apart.
const ENDINGS: &[&str] = &["s", "m", "d", "re", "ve", "ll"];

/// Words that keep their full stop more often than not, and others of their kind. Those with a
/// capital need it: `sat.` is no day. `No.` and `etc.` end too many sentences to be here.
const ABBREVIATIONS: &[&str] = &[
    "dr", "drs", "mr", "mrs", "ms", "prof", "hon", "jr", "sr", "capt", "lt", "maj", "sgt", "gov",
    "Col", "Gen", "Rep", "Reps", "Rev", "Sen", "jan", "feb", "Mar", "apr", "aug", "Sep", "sept",
    "oct", "nov", "Dec", "Mon", "Tue", "tues", "Wed", "Thu", "thur", "thurs", "Fri", "Sat", "Sun",
    "bros", "Co", "corp", "inc", "ltd", "blvd", "Ft", "La", "Mt", "St", "Sts", "Va", "attn",
    "arrv", "eg", "esp", "ext", "lb", "oz", "ph.d", "Vol", "vs",
];

/// A hyphen behind one of these stays in the word: `non-human`, but `well|-|known`. They are
/// those of the treebank.
const PREFIXES: &[&str] = &[
    "anti", "arch", "co", "counter", "cross", "e", "ex", "inter", "intra", "mid", "mis", "multi",
    "neo", "non", "over", "post", "pre", "pro", "psycho", "re", "semi", "socio", "sub", "un",
];

/// Words of their own behind a number (`5|pm`, `$|3|M`), unlike the endings of `5th` and `90s`.
/// Those of the treebank, and others of their kind.
const UNITS: &[&str] = &[
    "am", "pm", "a.m.", "p.m.", "k", "m", "mm", "b", "bn", "kg", "lb", "lbs", "oz", "ft", "cm",
    "km", "hz", "hh", "kb", "mb", "gb", "hr", "hrs", "x", "f", "c", "p",
];

/// How the name of a file or of a site ends.
const EXTENSIONS: &[&str] = &[
    "com", "net", "org", "edu", "gov", "doc", "xls", "pdf", "ppt", "txt", "htm", "html", "jpg",
    "gif", "zip", "exe",
];

/// One word each, unless a letter or a digit follows: `as follows:(a)`.
const EMOTICONS: &[&str] = &[
    ":-)", ":-(", ";-)", ":'(", ">:(", "^_^", "-_-", ":)", ":(", ";)", "=)", "=(", "(:", "<3",
    ":D", ":P", ":p", ":O", ":o", ":/", ";P", ";D", "=D",
];

/// The words of a chunk without spaces, as ranges of bytes that cover it.
pub(super) fn split(chunk: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    // A stack: the first piece of the text is on top.
    let mut pieces: Vec<_> = std::iter::once(0..chunk.len()).collect();
    while let Some(Range { start, mut end }) = pieces.pop() {
        let cuts = cuts(&chunk[start..end]);
        if cuts.is_empty() {
            words.push(start..end);
            continue;
        }
        for cut in cuts.into_iter().rev() {
            pieces.push(start + cut..end);
            end = start + cut;
        }
        pieces.push(start..end);
    }
    words
}

/// Where to cut a piece, in order; nowhere if it is a word.
fn cuts(text: &str) -> Vec<usize> {
    if address(text) == text.len() {
        return Vec::new();
    }
    RULES.iter().map(|rule| rule(text)).find(|cuts| !cuts.is_empty()).unwrap_or_default()
}

/// Letters, digits, and what belongs to the letter before.
fn is_inner(c: char) -> bool {
    c.is_alphanumeric() || is_mark(c)
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '’' | '`')
}

fn is_one_of(word: &str, table: &[&str]) -> bool {
    table.iter().any(|entry| entry.eq_ignore_ascii_case(word))
}

/// Apart from each other: what may be a word, and the punctuation around it.
fn lexemes(text: &str) -> Vec<usize> {
    let mut cuts = Vec::new();
    // Each stretch that may be an address is tried only once: the time stays linear.
    let (mut at, mut searched) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        let mut length = 0;
        if at >= searched {
            searched = at + rest.find(ends_name).map_or(rest.len(), |end| end + 1);
            length = address(rest);
        }
        at += if length == 0 { lexeme(rest) } else { length };
        cuts.push(at);
    }
    cuts.pop();
    cuts
}

fn ends_name(c: char) -> bool {
    is_apostrophe(c) || "()[]{}<>\"“”,;:!?|".contains(c)
}

/// The length of the web address, mail address or file name that a text begins with, or 0. It is
/// one word whatever it has inside, without the punctuation behind it.
fn address(text: &str) -> usize {
    let begins =
        |with: &str| text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    let scheme = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    if scheme > 0 && text[scheme..].starts_with("://") || begins("www.") || begins("mailto:") {
        let end = text.find(|c| ends_name(c) && !"(),;:!?".contains(c)).unwrap_or(text.len());
        let opens = text[..end].contains('(');
        let follows = |c| ".,;:!?".contains(c) || c == ')' && !opens;
        return text[..end].trim_end_matches(follows).len();
    }
    let end = text.find(ends_name).unwrap_or(text.len());
    let name = text[..end].trim_end_matches('.');
    let is_mail = name
        .split_once('@')
        .is_some_and(|(user, host)| !user.is_empty() && host.starts_with(is_inner));
    let is_file = name.rsplit_once('.').is_some_and(|(_, kind)| is_one_of(kind, EXTENSIONS));
    if is_mail || is_file { name.len() } else { 0 }
}

/// The length of what a text begins with, if not with an address.
fn lexeme(text: &str) -> usize {
    let mut characters = text.chars();
    let Some(first) = characters.next() else { return 0 };
    let after = characters.as_str();
    let second = characters.next().unwrap_or(' ');
    // `@Ryan` and `#music`, but `#|1`; `.5` and `+44`.
    let has_mark = match first {
        '@' | '#' => second.is_alphabetic(),
        '.' | '+' => second.is_ascii_digit(),
        _ => false,
    };
    if has_mark {
        return 1 + word(after);
    }
    if is_inner(first) {
        return word(text);
    }
    if is_apostrophe(first) {
        // No quotation: `'90s`, `'em`, and `'s` behind a bracket.
        let clipped = &after[..after.find(|c| !is_inner(c)).unwrap_or(after.len())];
        let year = clipped.strip_suffix('s').unwrap_or(clipped);
        let is_year = year.len() == 2 && year.bytes().all(|digit| digit.is_ascii_digit());
        if is_year || is_one_of(clipped, ENDINGS) || is_one_of(clipped, &["em", "n"]) {
            return first.len_utf8() + clipped.len();
        }
    }
    let is_here =
        |face: &&&str| text.strip_prefix(**face).is_some_and(|after| !after.starts_with(is_inner));
    EMOTICONS.iter().find(is_here).map_or_else(|| marks(text, first), |face| face.len())
}

/// The length of a word: letters, digits, and marks between them that the other rules may cut at.
fn word(text: &str) -> usize {
    let (mut end, mut before) = (0, ' ');
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let after = characters.peek().copied().unwrap_or(' ');
        let goes_on = match c {
            '.' | '-' | '/' | '&' | '_' | '*' => is_inner(after),
            ':' | ',' => before.is_ascii_digit() && after.is_ascii_digit(),
            _ => is_inner(c) || is_apostrophe(c) && after.is_alphabetic(),
        };
        if !goes_on {
            break;
        }
        end += c.len_utf8();
        before = c;
    }
    let behind = &text[end..];
    let has_stop = behind.starts_with('.') && !behind.starts_with("...");
    end + usize::from(has_stop && is_abbreviation(&text[..end]))
}

/// Does a full stop behind the word belong to it? Also to an initial (`J.`), and where there are
/// others between letters (`U.S.`, `10a.m.`).
fn is_abbreviation(word: &str) -> bool {
    let word = word.rsplit(['-', '/']).next().unwrap_or(word);
    let is_letter = |part: &str| part.len() == 1 && part.starts_with(char::is_alphabetic);
    let letters = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':');
    let is_listed = |entry: &&str| {
        *entry == word || entry.eq_ignore_ascii_case(word) && entry.starts_with(char::is_lowercase)
    };
    ABBREVIATIONS.iter().any(is_listed)
        || word.contains('.') && letters.split('.').all(is_letter)
        || is_letter(word) && word.starts_with(char::is_uppercase) && word != "I"
}

/// The length of the run of punctuation that a text begins with: `...`, `?!`, `--->`, or one mark,
/// repeated or not.
fn marks(text: &str, first: char) -> usize {
    let is_stop = |c| matches!(c, '.' | '!' | '?' | '…');
    let is_line = |c| matches!(c, '-' | '=' | '*' | '~' | '+' | '<' | '>' | '_');
    let is_quote = |c| matches!(c, '‘' | '’');
    // The colour of an emoji, and the next one where a joiner stands between.
    let is_emoji =
        |before, c| before == '\u{200d}' || is_mark(c) || ('\u{1f3fb}'..='\u{1f3ff}').contains(&c);
    if text.starts_with("..") {
        return text.len() - text.trim_start_matches('.').len();
    }
    let (mut end, mut before) = (first.len_utf8(), first);
    for c in text[end..].chars() {
        let goes_on = if is_stop(first) {
            is_stop(c) && !text[end..].starts_with("..")
        } else {
            c == first
                || is_line(first) && is_line(c)
                || is_quote(first) && is_quote(c)
                || is_emoji(before, c)
        };
        if !goes_on {
            break;
        }
        end += c.len_utf8();
        before = c;
    }
    end
}

/// `cannot` into `can|not`.
fn contraction(text: &str) -> Vec<usize> {
    let cut = |(firsts, second): &(&[&str], &str)| {
        let (first, rest) = text.split_at_checked(text.len().checked_sub(second.len())?)?;
        (rest.eq_ignore_ascii_case(second) && is_one_of(first, firsts)).then_some(first.len())
    };
    CONTRACTIONS.iter().find_map(cut).into_iter().collect()
}

/// `don't` into `do|n't`, `I'd've` into `I|'d|'ve`.
fn endings(text: &str) -> Vec<usize> {
    let mut cuts: Vec<_> =
        std::iter::successors(stem(text), |word| stem(word)).map(str::len).collect();
    cuts.reverse();
    cuts
}

/// A word without its last ending, if it has one. The plural `60's` has none.
fn stem(word: &str) -> Option<&str> {
    let (stem, ending) = word.rsplit_once(is_apostrophe)?;
    if ending.eq_ignore_ascii_case("t") {
        return stem.strip_suffix(['n', 'N']).filter(|stem| !stem.is_empty());
    }
    let is_plural = ending == "s" && stem.ends_with(|c: char| c.is_ascii_digit());
    (is_one_of(ending, ENDINGS) && !is_plural && !stem.is_empty()).then_some(stem)
}

/// `5pm` into `5|pm`, `20minutes` into `20|minutes`.
fn unit(text: &str) -> Vec<usize> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || ".,:".contains(c));
    let number = &text[..text.len() - unit.len()];
    let is_word = unit.len() > 3 && unit.bytes().all(|letter| letter.is_ascii_lowercase());
    let is_number = number.ends_with(|c: char| c.is_ascii_digit());
    if is_number && (is_word || is_one_of(unit, UNITS)) { vec![number.len()] } else { Vec::new() }
}

/// No space behind a full stop: `St.Paul` into `St.|Paul`, `end.Then` into `end|.|Then`.
fn full_stop(text: &str) -> Vec<usize> {
    let Some((before, after)) = text.trim_end_matches('.').rsplit_once('.') else {
        return Vec::new();
    };
    let mut letters = after.chars();
    let is_name = letters.next().is_some_and(char::is_uppercase)
        && letters.next().is_some_and(char::is_lowercase);
    let stop = before.len();
    if is_abbreviation(before) && (is_name || after.starts_with(|c: char| c.is_ascii_digit())) {
        vec![stop + 1]
    } else if is_name && before.ends_with(char::is_lowercase) && !before.contains('.') {
        vec![stop, stop + 1]
    } else {
        Vec::new()
    }
}

/// `well-known` into `well|-|known`, `and/or` into `and|/|or`.
fn hyphens_and_slashes(text: &str) -> Vec<usize> {
    let is_letter = |letter: &u8| letter.is_ascii_alphabetic();
    let is_short = matches!(text.as_bytes(), [a, b'/', b] if is_letter(a) && is_letter(b));
    let is_site =
        text.split('.').skip(1).any(|part| part.len() > 1 && part.starts_with(char::is_alphabetic));
    if !text.contains(char::is_alphanumeric) || is_short || is_site || is_date_or_telephone(text) {
        return Vec::new();
    }
    let mut cuts = Vec::new();
    let mut start = 0;
    for (at, mark) in text.match_indices(['-', '/']) {
        if mark == "/" || !is_one_of(&text[start..at], PREFIXES) {
            cuts.extend([at, at + 1]);
        }
        start = at + 1;
    }
    cuts.dedup();
    cuts.retain(|cut| 0 < *cut && *cut < text.len());
    cuts
}

/// `9/11`, `11/28/2000`, `345-9945`, `713-853-3989`; but `1|/|2` and `1969|-|1970`.
fn is_date_or_telephone(text: &str) -> bool {
    let parts: Vec<_> = text.split(['-', '/']).collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let up_to = |most: u8, part: &str| part.parse::<u8>().is_ok_and(|n| (1..=most).contains(&n));
    parts.iter().all(is_number)
        && match parts[..] {
            [month, day] if text.contains('/') => {
                up_to(12, month) && up_to(31, day) && text.len() > 3
            }
            [first, last] => last.len() == 4 && first.len() != 4,
            _ => parts.iter().any(|part| part.len() > 1),
        }
}

#[cfg(test)]
mod tests {
    use crate::Tokenizer;

    fn words(text: &str) -> String {
        Tokenizer::Written.words(text).join("|")
    }

    #[test]
    fn writing_keeps_everything() {
        assert_eq!(
            words("They don't (won't) go... It's Ann's."),
            "They|do|n't|(|wo|n't|)|go|...|It|'s|Ann|'s|."
        );
        assert_eq!(words("\"He'll say: 'no'!?\""), "\"|He|'ll|say|:|'|no|'|!?|\"");
    }

    #[test]
    fn words_are_those_of_the_treebank() {
        for (text, expected) in [
            // Contractions, with and without an apostrophe.
            ("I'd've said y’all can’t", "I|'d|'ve|said|y’all|ca|n’t"),
            ("Dont! I cannot, gonna; dunno", "Do|nt|!|I|can|not|,|gon|na|;|du|n|no"),
            ("its 60's O'Neill (FBI)'s", "its|60's|O'Neill|(|FBI|)|'s"),
            ("the '90s, tell 'em 'so'", "the|'90s|,|tell|'em|'|so|'"),
            // Full stops.
            ("Mr. J. Doe, Jan. 5, Inc.", "Mr.|J.|Doe|,|Jan.|5|,|Inc."),
            ("the U.S.-led, e.g., Ph.D. and I.", "the|U.S.|-|led|,|e.g.|,|Ph.D.|and|I|."),
            ("He sat. On Sat. in D.C..", "He|sat|.|On|Sat.|in|D.C.|."),
            ("St.Paul ended.Then", "St.|Paul|ended|.|Then"),
            // Addresses and names of files.
            ("(http://a.org/x-y?q=1,2&r=3).", "(|http://a.org/x-y?q=1,2&r=3|)|."),
            ("https://a.org/b_(c), etc.", "https://a.org/b_(c)|,|etc|."),
            ("<www.a-b.com>, mailto:x@y.org!", "<|www.a-b.com|>|,|mailto:x@y.org|!"),
            ("a.b-c@d.com; re-use.doc's", "a.b-c@d.com|;|re-use.doc|'s"),
            ("mayur...@yahoo.com @Ryan #music", "mayur...@yahoo.com|@Ryan|#music"),
            ("misc.frugal-living", "misc.frugal-living"),
            // Hyphens and slashes.
            ("well-known non-human e-mail", "well|-|known|non-human|e-mail"),
            ("a pro-same-gender 10-year-old", "a|pro-same|-|gender|10|-|year|-|old"),
            ("and/or w/o b/c 1/2", "and|/|or|w/o|b/c|1|/|2"),
            // Numbers, dates and units.
            ("$1,000.50 is 50% of .5", "$|1,000.50|is|50|%|of|.5"),
            ("5pm 10a.m. $3M 20minutes 5th B2B", "5|pm|10|a.m.|$|3|M|20|minutes|5th|B2B"),
            ("9/11 11/28/2000 4:30-5:00", "9/11|11/28/2000|4:30|-|5:00"),
            ("713-853-3989 345-9945 1969-1970", "713-853-3989|345-9945|1969|-|1970"),
            ("#1 AT&T +44", "#|1|AT&T|+44"),
            // Runs of punctuation, emoticons, emoji.
            ("What?!? no...? -- ok!!", "What|?!?|no|...|?|--|ok|!!"),
            ("``so'' ---> ***", "``|so|''|--->|***"),
            ("fine:) :-( <3 :D as follows:(a)", "fine|:)|:-(|<3|:D|as|follows|:|(|a|)"),
            ("ok👍🏽👩‍💻😂😂", "ok|👍🏽|👩‍💻|😂😂"),
        ] {
            assert_eq!(words(text), expected);
        }
    }

    #[test]
    fn a_long_chunk_takes_linear_time() {
        for part in ["a-", "a's", "(www.", "x@y,", "A.", "..!", "'n", "1/"] {
            // Quadratic time would be noticed: a minute instead of some milliseconds.
            let chunk = part.repeat(50_000);
            let length: usize = super::split(&chunk).iter().map(ExactSizeIterator::len).sum();
            assert_eq!(length, chunk.len());
        }
    }
}
