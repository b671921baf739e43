//! `#[derive(EventField)]`: turns an enum without fields into a field type.

use crate::attributes::{OnEnumeration, OnVariant};
use crate::name;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use std::collections::HashSet;
use syn::{Data, DeriveInput, Error, Fields, Result, parse_quote};

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Enum(data) = &input.data else {
        return Err(Error::new_spanned(
            &input.ident,
            "`EventField` is derived for enums without fields only",
        ));
    };
    if let Some(parameter) = input.generics.params.first() {
        return Err(Error::new_spanned(parameter, "an enum without fields needs no parameters"));
    }
    if data.variants.is_empty() {
        return Err(Error::new_spanned(&input.ident, "an enum without variants has no values to record"));
    }
    let krate = OnEnumeration::read(&input.attrs)?.krate.unwrap_or_else(|| parse_quote!(::tracewing));
    let repr = representation(input)?.unwrap_or_else(|| format_ident!("i32"));

    let mut labels = Vec::new();
    let mut seen = HashSet::new();
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new_spanned(&variant.fields, "variants with fields cannot be recorded"));
        }
        let named = OnVariant::read(&variant.attrs)?.name;
        let span = named.as_ref().map_or_else(|| variant.ident.span(), |name| name.span());
        let label = named.map_or_else(|| unraw(&variant.ident), |name| name.value());
        name::check_text(&label, span)?;
        if !seen.insert(label.clone()) {
            return Err(Error::new(span, format!("two variants have the label `{label}`")));
        }
        labels.push(label);
    }

    let ident = &input.ident;
    let variants: Vec<_> = data.variants.iter().map(|variant| &variant.ident).collect();
    let fits =
        format!("a value of `{ident}` does not fit `{repr}`; give the enum a `#[repr(…)]` that holds it");
    Ok(quote! {
        const _: () = {
            use #krate::__private as __tracewing;

            const __LABELS: &[(u64, &str)] = &[#((#ident::#variants as i64 as u64, #labels)),*];
            #(::core::assert!(#ident::#variants as i128 == #ident::#variants as #repr as i128, #fits);)*

            // SAFETY: (1) exactly the scalar's bytes, (2) nothing.
            unsafe impl __tracewing::Field for #ident {
                const TYPE: __tracewing::FieldType =
                    __tracewing::FieldType::enumeration(<#repr as __tracewing::Field>::TYPE.scalar, __LABELS);
                #[inline(always)]
                unsafe fn write(&self, out: &mut __tracewing::Writer) {
                    let value = match self { #(Self::#variants => #ident::#variants as #repr,)* };
                    // SAFETY: the caller's (1).
                    unsafe { __tracewing::Field::write(&value, out) }
                }
            }
        };
    })
}

fn unraw(ident: &Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map(str::to_owned).unwrap_or(name)
}

/// The integer type in `#[repr(…)]`.
fn representation(input: &DeriveInput) -> Result<Option<Ident>> {
    let mut found = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            let Some(ident) = meta.path.get_ident() else { return Ok(()) };
            match ident.to_string().as_str() {
                "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize" => {
                    found = Some(ident.clone());
                }
                "u128" | "i128" => return Err(meta.error("values of enumerations have at most 64 bits")),
                _ => {}
            }
            Ok(())
        })?;
    }
    Ok(found)
}
