//! Sums of products of numbers, metrics and parentheses.

use super::{Expression, Metric, ObjectiveError, Operator};

/// No real expression is deeper, and recursion must end.
const DEEPEST: usize = 64;

pub(super) fn parse(text: &str) -> Result<Expression, ObjectiveError> {
    let mut parser = Parser { text, rest: text, depth: 0 };
    let expression = parser.sum()?;
    parser.space();
    if parser.rest.is_empty() {
        Ok(expression)
    } else {
        Err(parser.error("an operator (+ - * /) is missing"))
    }
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    depth: usize,
}

impl Parser<'_> {
    fn sum(&mut self) -> Result<Expression, ObjectiveError> {
        self.chain(Self::product, &[('+', Operator::Plus), ('-', Operator::Minus)])
    }

    fn product(&mut self) -> Result<Expression, ObjectiveError> {
        self.chain(Self::factor, &[('*', Operator::Times), ('/', Operator::By)])
    }

    /// Parses operands between operators of the same precedence, from left to right.
    fn chain(
        &mut self,
        operand: fn(&mut Self) -> Result<Expression, ObjectiveError>,
        operators: &[(char, Operator)],
    ) -> Result<Expression, ObjectiveError> {
        let mut left = operand(self)?;
        while let Some(&(_, operator)) = operators.iter().find(|(sign, _)| self.take(*sign)) {
            left = Expression::Combined(operator, Box::new(left), Box::new(operand(self)?));
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Expression, ObjectiveError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error("parentheses and signs are nested too deeply"));
        }
        let factor = self.unguarded_factor();
        self.depth -= 1;
        factor
    }

    fn unguarded_factor(&mut self) -> Result<Expression, ObjectiveError> {
        if self.take('-') {
            return Ok(Expression::Negated(Box::new(self.factor()?)));
        }
        if self.take('(') {
            let inner = self.sum()?;
            return if self.take(')') { Ok(inner) } else { Err(self.error("a `)` is missing")) };
        }
        self.space();
        if self.rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return self.number();
        }
        self.metric()
    }

    fn number(&mut self) -> Result<Expression, ObjectiveError> {
        let is_exponent = |before: u8| matches!(before, b'e' | b'E');
        let bytes = self.rest.as_bytes();
        let belongs = |&(index, byte): &(usize, &u8)| match byte {
            b'0'..=b'9' | b'.' | b'e' | b'E' => true,
            b'+' | b'-' => is_exponent(bytes[index - 1]),
            _ => false,
        };
        let length = bytes.iter().enumerate().take_while(belongs).count();
        let number = self.rest[..length].parse().map_err(|_| self.error("this is not a number"))?;
        self.rest = &self.rest[length..];
        Ok(Expression::Number(number))
    }

    fn metric(&mut self) -> Result<Expression, ObjectiveError> {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = self.rest.find(|c| !word(c)).unwrap_or(self.rest.len());
        let name = &self.rest[..length];
        let Some(metric) = Metric::ALL.into_iter().find(|metric| metric.name() == name) else {
            let names = Metric::ALL.map(Metric::name).join(", ");
            return Err(if name.is_empty() {
                self.error(&format!("a number or one of {names} is missing"))
            } else {
                self.error(&format!("`{name}` is not measured, only {names} are,"))
            });
        };
        self.rest = &self.rest[length..];
        Ok(Expression::Metric(metric))
    }

    fn take(&mut self, sign: char) -> bool {
        self.space();
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn error(&self, what: &str) -> ObjectiveError {
        let done = &self.text[..self.text.len() - self.rest.len()];
        ObjectiveError {
            text: self.text.to_owned(),
            position: done.chars().count() + 1,
            what: what.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn failure(text: &str) -> (usize, String) {
        let error = parse(text).unwrap_err();
        (error.position, error.what)
    }

    #[test]
    fn errors_point_at_the_place() {
        assert_eq!(failure("cpu_us + cpuus").0, 10);
        assert_eq!(failure("cpu_us rss_mb").0, 8);
        assert_eq!(failure("(cpu_us + 1").0, 12);
        assert_eq!(failure("").0, 1);
        assert_eq!(failure("2 * ").0, 5);
        assert_eq!(failure("1.2.3").0, 1);
        assert!(failure("p999_ms").1.contains("p99_ms"));
        let message = parse("cpu_us + x").unwrap_err().to_string();
        assert!(message.ends_with("  cpu_us + x\n           ^"), "{message}");
    }

    #[test]
    fn a_thousand_parentheses_are_refused() {
        assert!(failure(&"(".repeat(1000)).1.contains("nested"));
        assert!(failure(&"-".repeat(1000)).1.contains("nested"));
    }

    proptest! {
        #[test]
        fn any_text_has_a_value_or_an_error_within_it(text in "[a-z0-9_+*/(). é-]{0,40}") {
            if let Err(error) = parse(&text) {
                prop_assert!((1..=text.chars().count() + 1).contains(&error.position));
            }
        }
    }
}
