//! Parses `#[event(…)]` and doc comments.

use crate::name;
use proc_macro2::{Ident, Span};
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Error, Expr, ExprLit, Lit, LitStr, Meta, Path, Result};

/// `#[event(…)]` on the struct.
#[derive(Default)]
pub(crate) struct OnClass {
    pub name: Option<LitStr>,
    pub provider: Option<LitStr>,
    /// The variant of `Level`.
    pub level: Option<Ident>,
    /// The major class, 0 to 63.
    pub major: Option<u8>,
    pub print: Option<LitStr>,
    pub ordered: Option<Span>,
    pub krate: Option<Path>,
}

/// `#[event(…)]` on a field of the struct.
#[derive(Default)]
pub(crate) struct OnField {
    pub name: Option<LitStr>,
    /// The variant of `Base`, with the attribute's place.
    pub base: Option<Ident>,
    pub unit: Option<LitStr>,
    pub skip: Option<Span>,
}

/// `#[event(…)]` on an enum.
#[derive(Default)]
pub(crate) struct OnEnumeration {
    pub krate: Option<Path>,
}

/// `#[event(…)]` on a variant of an enum.
#[derive(Default)]
pub(crate) struct OnVariant {
    pub name: Option<LitStr>,
}

impl OnClass {
    pub(crate) fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut this = Self::default();
        for_each(attributes, |meta| match key(&meta).as_str() {
            "name" => {
                let name = set(&mut this.name, &meta, string)?;
                name::check_event_part(&name.value(), name.span(), true)
            }
            "provider" => {
                let provider = set(&mut this.provider, &meta, string)?;
                name::check_event_part(&provider.value(), provider.span(), false)
            }
            "level" => set(&mut this.level, &meta, level).map(drop),
            "major" => set(&mut this.major, &meta, major).map(drop),
            "print" => set(&mut this.print, &meta, string).map(drop),
            "ordered" => set(&mut this.ordered, &meta, flag).map(drop),
            "crate" => set(&mut this.krate, &meta, path).map(drop),
            _ => {
                Err(meta
                    .error("expected `name`, `provider`, `level`, `major`, `print`, `ordered` or `crate`"))
            }
        })?;
        Ok(this)
    }
}

impl OnField {
    pub(crate) fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut this = Self::default();
        for_each(attributes, |meta| match key(&meta).as_str() {
            "name" => {
                let name = set(&mut this.name, &meta, string)?;
                name::check_field(&name.value(), name.span())
            }
            "unit" => {
                let unit = set(&mut this.unit, &meta, string)?;
                if matches!(unit.value().as_str(), "bool" | "char") {
                    return Err(Error::new(
                        unit.span(),
                        "the units `bool` and `char` are reserved for these types",
                    ));
                }
                name::check_text(&unit.value(), unit.span())
            }
            "hex" => set(&mut this.base, &meta, |meta| base(meta, "Hexadecimal")).map(drop),
            "octal" => set(&mut this.base, &meta, |meta| base(meta, "Octal")).map(drop),
            "binary" => set(&mut this.base, &meta, |meta| base(meta, "Binary")).map(drop),
            "skip" => set(&mut this.skip, &meta, flag).map(drop),
            _ => Err(meta.error("expected `hex`, `octal`, `binary`, `unit`, `name` or `skip`")),
        })?;
        Ok(this)
    }
}

impl OnEnumeration {
    pub(crate) fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut this = Self::default();
        for_each(attributes, |meta| match key(&meta).as_str() {
            "crate" => set(&mut this.krate, &meta, path).map(drop),
            _ => Err(meta.error("expected `crate`")),
        })?;
        Ok(this)
    }
}

impl OnVariant {
    pub(crate) fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut this = Self::default();
        for_each(attributes, |meta| match key(&meta).as_str() {
            "name" => {
                let name = set(&mut this.name, &meta, string)?;
                name::check_text(&name.value(), name.span())
            }
            _ => Err(meta.error("expected `name`")),
        })?;
        Ok(this)
    }
}

/// The doc comment, its lines joined.
pub(crate) fn description(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => text(&pair.value),
        _ => None,
    });
    let text = lines.collect::<Vec<_>>().join(" ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A literal text, also one that a declarative macro has passed on.
fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        Expr::Group(group) => text(&group.expr),
        _ => None,
    }
}

fn for_each(attributes: &[Attribute], mut each: impl FnMut(ParseNestedMeta) -> Result<()>) -> Result<()> {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("event"))
        .try_for_each(|attribute| attribute.parse_nested_meta(&mut each))
}

fn key(meta: &ParseNestedMeta) -> String {
    meta.path.get_ident().map(ToString::to_string).unwrap_or_default()
}

/// Stores a value, unless one was given before.
fn set<T: Clone>(
    place: &mut Option<T>,
    meta: &ParseNestedMeta,
    read: impl FnOnce(&ParseNestedMeta) -> Result<T>,
) -> Result<T> {
    if place.is_some() {
        return Err(meta.error("said before"));
    }
    let value = read(meta)?;
    Ok(place.insert(value).clone())
}

fn string(meta: &ParseNestedMeta) -> Result<LitStr> {
    meta.value()?.parse()
}

fn path(meta: &ParseNestedMeta) -> Result<Path> {
    meta.value()?.call(Path::parse_mod_style)
}

fn flag(meta: &ParseNestedMeta) -> Result<Span> {
    Ok(meta.path.get_ident().map_or_else(Span::call_site, Ident::span))
}

fn base(meta: &ParseNestedMeta, variant: &str) -> Result<Ident> {
    Ok(Ident::new(variant, flag(meta)?))
}

fn level(meta: &ParseNestedMeta) -> Result<Ident> {
    let level = string(meta)?;
    let variant = match level.value().as_str() {
        "error" => "Error",
        "warn" => "Warn",
        "info" => "Info",
        "debug" => "Debug",
        "trace" => "Trace",
        _ => {
            return Err(Error::new(
                level.span(),
                "expected \"error\", \"warn\", \"info\", \"debug\" or \"trace\"",
            ));
        }
    };
    Ok(Ident::new(variant, Span::call_site()))
}

fn major(meta: &ParseNestedMeta) -> Result<u8> {
    let number: syn::LitInt = meta.value()?.parse()?;
    let major = number.base10_parse().ok().filter(|major| *major < 64);
    major.ok_or_else(|| Error::new(number.span(), "expected the number of a major class, 0 to 63"))
}
