//! Pure: raw facts to labelled figures.
