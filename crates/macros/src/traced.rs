//! `#[traced]`: records the beginning and end of a function.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Block, Error, ImplItem, Item, ItemImpl, Result, Signature, Type, parse_quote, parse2};

pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !arguments.is_empty() {
        return Err(Error::new_spanned(arguments, "`#[traced]` takes no arguments"));
    }
    match parse2(item)? {
        Item::Fn(mut function) => {
            trace(&function.sig, &function.attrs, &mut function.block, "")?;
            Ok(quote!(#function))
        }
        Item::Impl(mut block) => {
            trace_methods(&mut block)?;
            Ok(quote!(#block))
        }
        other => Err(Error::new(other.span(), "`#[traced]` is for functions and `impl` blocks")),
    }
}

/// Functions that cannot be traced stay unchanged: the author of a block did not choose each of them.
fn trace_methods(block: &mut ItemImpl) -> Result<()> {
    let of_type = match &*block.self_ty {
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.unraw().to_string()),
        _ => None,
    };
    let path = of_type.map_or_else(String::new, |name| format!("{name}::"));
    for item in &mut block.items {
        if let ImplItem::Fn(method) = item
            && refusal(&method.sig, &method.attrs).is_none()
        {
            trace(&method.sig, &method.attrs, &mut method.block, &path)?;
        }
    }
    Ok(())
}

/// Inserts the two sites into a function.
fn trace(signature: &Signature, attributes: &[Attribute], block: &mut Block, path: &str) -> Result<()> {
    if let Some((place, reason)) = refusal(signature, attributes) {
        return Err(Error::new(place, reason));
    }
    let name = format!("::{path}{}", signature.ident.unraw());
    block.stmts.insert(0, parse_quote!(let __tracewing_function = ::tracewing::__function!(#name);));
    Ok(())
}

/// Why a function cannot be traced, and where to report it.
fn refusal(signature: &Signature, attributes: &[Attribute]) -> Option<(Span, &'static str)> {
    let naked = attributes.iter().find(|attribute| {
        attribute.path().segments.last().is_some_and(|segment| segment.ident == "naked")
            || attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "naked")
    });
    if let Some(word) = &signature.asyncness {
        return Some((
            word.span(),
            "an `async fn` begins and ends with each poll: make it a task or a span of its own",
        ));
    }
    if let Some(word) = &signature.constness {
        return Some((word.span(), "a `const fn` can run in the compiler, where nothing is recorded"));
    }
    naked.map(|attribute| (attribute.span(), "a naked function has nothing but its instructions"))
}
