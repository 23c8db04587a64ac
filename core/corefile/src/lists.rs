//! V8 links the pages of each space. A link to a page that is not there shows that the file lacks it, and all objects on it.

use std::collections::HashSet;

use crate::bytes::word;
use crate::image::Image;
use crate::pages::{Page, Pages};

/// Where the next page of the space may be named in a page's header, in words; the one before is named beside it.
const PLACES: std::ops::Range<usize> = 20..48;

/// How many pages are missing, as far as links tell.
pub(crate) fn missing(image: &Image<'_>, pages: &Pages) -> u64 {
    // Those that are only read are in no list.
    let linked: Vec<&Page> = pages.list.iter().filter(|page| page.heap != 0 && page.owner != 0).collect();
    let known: HashSet<u64> = linked.iter().map(|page| page.header).collect();
    let link = |header: u64, place: usize| word(image.at(header + 8 * place as u64, 8), 0);
    let leads_back = |header: u64, place: usize| {
        let next = link(header, place);
        known.contains(&next) && link(next, place + 1) == header
    };
    let agree = |place: usize| known.iter().filter(|&&header| leads_back(header, place)).count();
    let best = PLACES.map(|place| (agree(place), place)).max();
    // Each space has a last page.
    let Some((_, place)) = best.filter(|(count, _)| count * 2 > known.len()) else { return 0 };
    let links = known.iter().flat_map(|&header| [link(header, place), link(header, place + 1)]);
    let lost: HashSet<u64> = links.filter(|next| *next != 0 && !known.contains(next)).collect();
    lost.len() as u64
}
