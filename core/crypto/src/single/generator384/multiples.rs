//! Multiples of the generator, for `build.rs`.

use super::field::{B, Element, GENERATOR, MULTIPLES, ONE, PRIME, WINDOWS, Window, add, mul, sub};

/// In projective coordinates.
type Point = [Element; 3];

/// The windows, the lowest first.
pub(crate) fn table() -> Vec<Window> {
    let mut first = [GENERATOR[0], GENERATOR[1], ONE];
    (0..WINDOWS)
        .map(|_| {
            let multiples = std::iter::successors(Some(first), |last| Some(sum(last, &first)));
            let multiples: Vec<Point> = multiples.take(MULTIPLES).collect();
            let last = multiples[MULTIPLES - 1];
            first = sum(&last, &last);
            std::array::from_fn(|i| affine(&multiples[i]))
        })
        .collect()
}

fn affine([x, y, z]: &Point) -> [Element; 2] {
    let inverse = invert(z);
    [mul(x, &inverse), mul(y, &inverse)]
}

/// The complete formula for two projective points, algorithm 4.
fn sum([x1, y1, z1]: &Point, [x2, y2, z2]: &Point) -> Point {
    let t0 = mul(x1, x2);
    let t1 = mul(y1, y2);
    let t2 = mul(z1, z2);
    let t3 = sub(&mul(&add(x1, y1), &add(x2, y2)), &add(&t0, &t1));
    let t4 = sub(&mul(&add(y1, z1), &add(y2, z2)), &add(&t1, &t2));
    let y3 = sub(&mul(&add(x1, z1), &add(x2, z2)), &add(&t0, &t2));
    let x3 = sub(&y3, &mul(&B, &t2));
    let x3 = add(&x3, &add(&x3, &x3));
    let z3 = sub(&t1, &x3);
    let x3 = add(&t1, &x3);
    let t2 = add(&add(&t2, &t2), &t2);
    let y3 = sub(&sub(&mul(&B, &y3), &t2), &t0);
    let y3 = add(&add(&y3, &y3), &y3);
    let t0 = sub(&add(&add(&t0, &t0), &t0), &t2);
    [
        sub(&mul(&t3, &x3), &mul(&t4, &y3)),
        add(&mul(&x3, &z3), &mul(&t0, &y3)),
        add(&mul(&t4, &z3), &mul(&t3, &t0)),
    ]
}

/// The power prime - 2.
fn invert(value: &Element) -> Element {
    let mut power = ONE;
    let mut bit = 384;
    while bit > 0 {
        bit -= 1;
        power = mul(&power, &power);
        let exponent = if bit / 64 == 0 { PRIME[0] - 2 } else { PRIME[bit / 64] };
        if exponent >> (bit % 64) & 1 == 1 {
            power = mul(&power, value);
        }
    }
    power
}
