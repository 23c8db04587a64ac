//! Random numbers and English-looking text that are the same everywhere.

/// SplitMix64: small, and no new version of a library can change the corpus.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `limit`.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    pub(super) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    pub(super) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Less than `limit`, with small numbers far more frequent than large ones, like words in any language.
    fn skewed(&mut self, limit: usize) -> usize {
        let share = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        (limit as f64 * share * share * share.sqrt()) as usize
    }
}

/// Common words, the most common first.
const WORDS: &str = "the of and to a in is that for it as was with be by on not he this are or his from at which but \
    have an had they you were their one all we can her has there been if more when will would who so no she other its \
    may these what them than some him time into only could new then our about first my two also over such after do \
    man any even most made before must through years many where much your way down should because each just those \
    people how too good very make world still own see men work long get here between both under life being never \
    know day same another while last might great old year off come since against go came right used take three states \
    himself few house use during without again place around however home small found thought went say part once \
    general high upon school every does got united left number course war until always away something fact though \
    water less public put think almost hand enough far took head yet government system better set told nothing night \
    end why called find look going point knew next city business give group toward young days let room within name \
    side social given national order second present possible rather per face among form important often things looked \
    early white case become large need big four felt children along god best church ever least power development light \
    thing family seemed interest want members others mind country area done turned although open service certain kind \
    problem began different door thus help means sense whole matter work itself action york law human line above today \
    history money question information company market report price change server request response content account \
    product customer delivery order payment shipping release version network security storage memory process machine \
    energy climate summer winter river mountain village station bridge garden kitchen window morning evening travel \
    music theatre museum picture camera design colour paper letter author reader journal article editor research study \
    university professor student science method result measure analysis model theory language translation dictionary \
    engine signal channel surface structure material pressure temperature volume weight distance speed current voltage";

/// Sentences as repetitive as real ones: a word is often followed by one of a few typical successors.
#[derive(Debug)]
pub(super) struct Prose {
    words: Vec<&'static str>,
    last: usize,
}

impl Prose {
    pub(super) fn new() -> Self {
        Self { words: WORDS.split_whitespace().collect(), last: 0 }
    }

    pub(super) fn word(&mut self, random: &mut Random) -> &'static str {
        let index = if random.percent(55) {
            let companion = (self.last * 31 + random.skewed(9) * 17) as u64;
            Random::new(companion).skewed(self.words.len())
        } else {
            random.skewed(self.words.len())
        };
        self.last = index;
        self.words[index]
    }

    /// `words` words with an initial capital.
    pub(super) fn phrase(&mut self, random: &mut Random, words: usize) -> String {
        let phrase = (0..words).map(|_| self.word(random)).collect::<Vec<_>>().join(" ");
        phrase[..1].to_uppercase() + &phrase[1..]
    }

    pub(super) fn sentence(&mut self, random: &mut Random) -> String {
        let words = random.between(6, 22);
        let mut sentence = self.phrase(random, words / 2);
        sentence += if random.percent(40) { ", " } else { " " };
        let rest: Vec<_> = (0..words / 2).map(|_| self.word(random)).collect();
        sentence += &rest.join(" ");
        sentence + random.pick(&[".", ".", ".", ".", "?", ";"])
    }

    pub(super) fn paragraph(&mut self, random: &mut Random) -> String {
        let sentences = random.between(2, 6);
        (0..sentences).map(|_| self.sentence(random)).collect::<Vec<_>>().join(" ")
    }

    /// As in addresses: words with hyphens.
    pub(super) fn slug(&mut self, random: &mut Random) -> String {
        let words = random.between(2, 5);
        (0..words).map(|_| self.word(random)).collect::<Vec<_>>().join("-")
    }

    /// As in source code: `customerPayment`.
    pub(super) fn identifier(&mut self, random: &mut Random) -> String {
        let first = self.word(random);
        let second = self.phrase(random, 1);
        if random.percent(60) { format!("{first}{second}") } else { first.to_owned() }
    }
}
