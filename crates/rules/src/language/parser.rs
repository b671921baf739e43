//! From a predicate's words to its tree. Recursion is as deep as the nesting of parentheses and `!`, which is
//! bounded.

use super::fault::{Fault, PredicateFault};
use super::glob::Glob;
use super::integer::Integer;
use super::lexer::{Lexer, Token};
use super::relation::Orders;
use super::tree::{Comparison, Leaf, Literal, Node, Operand, Scope, Variable};

/// Deepest nesting of parentheses and `!`.
const DEEPEST: u32 = 64;

const RELATIONS: [(&str, Orders); 6] = [
    ("==", Orders::EQUAL),
    ("!=", Orders::NOT_EQUAL),
    ("<", Orders::LESS),
    ("<=", Orders::AT_MOST),
    (">", Orders::GREATER),
    (">=", Orders::AT_LEAST),
];

pub(crate) fn parse(text: &str) -> Result<Node, Fault> {
    let mut lexer = Lexer::new(text);
    let (token, at) = lexer.next()?;
    let mut parser = Parser { lexer, token, at, depth: 0 };
    let root = parser.predicate()?;
    match parser.token {
        Token::End => Ok(root),
        Token::Sign(")") => Err(parser.fault(PredicateFault::Unopened)),
        Token::Name(ref word) if word == "and" => Err(parser.fault(PredicateFault::WordAnd)),
        Token::Name(ref word) if word == "or" => Err(parser.fault(PredicateFault::WordOr)),
        _ => Err(parser.fault(PredicateFault::NoConnective)),
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The next word and its position.
    token: Token,
    at: usize,
    depth: u32,
}

impl Parser<'_> {
    fn fault(&self, what: PredicateFault) -> Fault {
        Fault::new(self.at, what)
    }

    fn advance(&mut self) -> Result<Token, Fault> {
        let (token, at) = self.lexer.next()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn take(&mut self, sign: &str) -> Result<bool, Fault> {
        let found = matches!(self.token, Token::Sign(next) if next == sign);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, sign: &str, what: PredicateFault) -> Result<(), Fault> {
        if self.take(sign)? { Ok(()) } else { Err(self.fault(what)) }
    }

    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.fault(PredicateFault::Depth));
        }
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn predicate(&mut self) -> Result<Node, Fault> {
        let mut parts = vec![self.all()?];
        while self.take("||")? {
            parts.push(self.all()?);
        }
        Ok(only(parts, Node::Any))
    }

    fn all(&mut self) -> Result<Node, Fault> {
        let mut parts = vec![self.unit()?];
        while self.take("&&")? {
            parts.push(self.unit()?);
        }
        Ok(only(parts, Node::All))
    }

    fn unit(&mut self) -> Result<Node, Fault> {
        if matches!(self.token, Token::Sign("!")) {
            return self.negation();
        }
        let start = self.at;
        let left = self.term()?;
        let Token::Sign(sign) = self.token else { return Ok(left) };
        let pattern = matches!(sign, "=~" | "!~");
        let orders = RELATIONS.into_iter().find(|(relation, _)| *relation == sign).map(|(_, orders)| orders);
        if !pattern && orders.is_none() {
            return Ok(left);
        }
        let left = operand(left, start)?;
        self.advance()?;
        let comparison = match orders {
            Some(orders) => {
                let start = self.at;
                let right = self.term()?;
                Comparison::Relation(left, orders, operand(right, start)?)
            }
            None => {
                let Token::Text(text) = &self.token else {
                    return Err(self.fault(PredicateFault::NoPattern));
                };
                let pattern = Glob::new(text.as_str());
                self.advance()?;
                Comparison::Match { operand: left, pattern, negated: sign == "!~" }
            }
        };
        if self.at_relation() {
            return Err(self.fault(PredicateFault::Chain));
        }
        Ok(Node::Comparison(comparison))
    }

    fn negation(&mut self) -> Result<Node, Fault> {
        self.advance()?;
        let inner =
            if matches!(self.token, Token::Sign("!")) { self.deeper(Self::negation)? } else { self.term()? };
        if self.at_relation() {
            return Err(self.fault(PredicateFault::NegatedRelation));
        }
        Ok(Node::Not(Box::new(inner)))
    }

    fn at_relation(&self) -> bool {
        let Token::Sign(sign) = self.token else { return false };
        matches!(sign, "=~" | "!~") || RELATIONS.iter().any(|(relation, _)| *relation == sign)
    }

    /// A parenthesised predicate or a single operand, with an optional `&`.
    fn term(&mut self) -> Result<Node, Fault> {
        let start = self.at;
        let node = if self.take("(")? {
            let inner = self.deeper(Self::predicate)?;
            self.expect(")", PredicateFault::Unclosed)?;
            inner
        } else {
            single(Operand { value: self.leaf()?, mask: None })
        };
        let sign = self.at;
        if !self.take("&")? {
            return Ok(node);
        }
        let operand = operand(node, start)?;
        if operand.mask.is_some() || !matches!(operand.value, Leaf::Variable(_)) {
            return Err(Fault::new(sign, PredicateFault::BitsOfValue));
        }
        let Token::Integer(mask) = self.token else {
            return Err(self.fault(PredicateFault::NoBits));
        };
        if mask < Integer::from(0_u8) {
            return Err(self.fault(PredicateFault::NegativeBits));
        }
        self.advance()?;
        Ok(single(Operand { mask: Some(mask), ..operand }))
    }

    fn leaf(&mut self) -> Result<Leaf, Fault> {
        let fault = match &self.token {
            Token::Sign("$") => {
                self.advance()?;
                return Ok(Leaf::Variable(self.variable(Scope::Context)?));
            }
            Token::Name(_) => return self.named(),
            Token::Integer(_) | Token::Real(_) | Token::Text(_) | Token::Quantity(_) => {
                return Ok(Leaf::Literal(match self.advance()? {
                    Token::Quantity(quantity) => return Ok(Leaf::Quantity(Box::new(quantity))),
                    Token::Integer(number) => Literal::Integer(number),
                    Token::Real(number) => Literal::Real(number),
                    Token::Text(text) => Literal::Text(text),
                    Token::Name(_) | Token::Sign(_) | Token::End => {
                        return Err(self.fault(PredicateFault::NoOperand));
                    }
                }));
            }
            Token::Sign(_) | Token::End => self.fault(PredicateFault::NoOperand),
        };
        Err(fault)
    }

    /// A term that begins with a name.
    fn named(&mut self) -> Result<Leaf, Fault> {
        let Token::Name(name) = &self.token else { return Err(self.fault(PredicateFault::NoOperand)) };
        match name.as_str() {
            "true" | "false" => {
                let value = Integer::from(name == "true");
                self.advance()?;
                Ok(Leaf::Literal(Literal::Integer(value)))
            }
            // A field can also be named `len`.
            "len" if self.lexer.is_followed_by('(') => {
                self.advance()?;
                self.expect("(", PredicateFault::NoOperand)?;
                let scope = if self.take("$")? { Scope::Context } else { Scope::Field };
                let variable = self.variable(scope)?;
                if variable.index.is_some() {
                    return Err(self.fault(PredicateFault::LengthOfElement));
                }
                self.expect(")", PredicateFault::Unclosed)?;
                Ok(Leaf::Variable(Variable { length: true, ..variable }))
            }
            _ => Ok(Leaf::Variable(self.variable(Scope::Field)?)),
        }
    }

    fn variable(&mut self, scope: Scope) -> Result<Variable, Fault> {
        let mut name = self.name()?;
        let mut index: Option<u32> = None;
        loop {
            if matches!(self.token, Token::Sign("." | "["))
                && let Some(inner) = index.take()
            {
                name += &format!("[{inner}]");
            }
            if self.take(".")? {
                name.push('.');
                name += &self.name()?;
                continue;
            }
            if !self.take("[")? {
                return Ok(Variable { scope, name, index, length: false });
            }
            let Token::Integer(number) = self.token else {
                return Err(self.fault(PredicateFault::NoIndex));
            };
            let number = (!number.is_negative()).then(|| u32::try_from(number.bits()).ok()).flatten();
            index = Some(number.ok_or_else(|| self.fault(PredicateFault::LargeIndex))?);
            self.advance()?;
            self.expect("]", PredicateFault::UnclosedIndex)?;
        }
    }

    fn name(&mut self) -> Result<String, Fault> {
        let fault = self.fault(PredicateFault::NoName);
        match self.advance()? {
            Token::Name(name) => Ok(name),
            _ => Err(fault),
        }
    }
}

fn single(operand: Operand) -> Node {
    Node::Comparison(Comparison::True(operand))
}

/// The side of a relation that begins at `start`.
fn operand(node: Node, start: usize) -> Result<Operand, Fault> {
    match node {
        Node::Comparison(Comparison::True(operand)) => Ok(operand),
        _ => Err(Fault::new(start, PredicateFault::RelationAsOperand)),
    }
}

fn only(mut parts: Vec<Node>, several: fn(Vec<Node>) -> Node) -> Node {
    match parts.pop() {
        Some(part) if parts.is_empty() => part,
        Some(part) => {
            parts.push(part);
            several(parts)
        }
        None => several(parts),
    }
}
