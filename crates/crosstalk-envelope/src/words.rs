//! Enums whose variants are words on the wire, in a file or in JSON.

/// Declares an enum together with the word for each variant, and gives it `ALL`, `as_str` and `parse`.
///
/// ```
/// crosstalk_envelope::words! {
///     /// How urgent it is.
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum Urgency {
///         /// At once.
///         High = "high",
///         /// Some day.
///         Low = "low",
///     }
/// }
/// assert_eq!(Urgency::ALL.map(Urgency::as_str), ["high", "low"]);
/// assert_eq!(Urgency::parse("low"), Some(Urgency::Low));
/// ```
#[macro_export]
macro_rules! words {
    ($(#[$attribute:meta])* $visibility:vis enum $name:ident {
        $($(#[$doc:meta])* $variant:ident = $word:literal,)+
    }) => {
        $(#[$attribute])*
        $visibility enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// All of them, in the order of their declaration.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word for it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The one that this exact word means.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|each| each.as_str() == word)
            }
        }
    };
}
