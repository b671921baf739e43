//! `#[derive(Event)]`: turns a struct into an event class.

use crate::attributes::{OnClass, OnField, description};
use crate::{name, print};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{Data, DeriveInput, Error, Fields, GenericParam, Lifetime, LitStr, Result, Type, parse_quote};

/// A field that is recorded.
struct Recorded<'a> {
    ident: &'a Ident,
    of_type: &'a Type,
    name: String,
    hints: OnField,
}

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    refuse_parameters(input)?;
    let class = OnClass::read(&input.attrs)?;
    let fields = recorded_fields(input)?;
    let checks = field_checks(&fields).chain(print_checks(class.print.as_ref(), &fields)?);

    let krate = class.krate.clone().unwrap_or_else(|| parse_quote!(::tracewing));
    let declaration = declaration(input, &class, &fields);
    let ordered = class.ordered.is_some();
    let idents = fields.iter().rev().map(|field| field.ident);
    let values = idents.fold(quote!(()), |rest, ident| quote!((&self.#ident, #rest)));
    let types = fields.iter().rev().map(|field| without_lifetimes(field.of_type));
    let types = types.fold(quote!(()), |rest, of_type| quote!((#of_type, #rest)));

    let count = fields.len();
    let ident = &input.ident;
    let (parameters, arguments, conditions) = input.generics.split_for_impl();
    Ok(quote! {
        const _: () = {
            use #krate::__private as __tracewing;

            #declaration
            #(#checks)*
            type __FieldTypes = #types;
            const __LAYOUT: __tracewing::Layout = __tracewing::layout::<__FieldTypes>();

            static __CLASS: __tracewing::EventClass =
                __tracewing::EventClass::new(__tracewing::describe::<__Declaration, __FieldTypes, #count>);

            #[automatically_derived]
            impl #parameters #krate::Event for #ident #arguments #conditions {
                #[inline(always)]
                fn class() -> &'static __tracewing::EventClass {
                    &__CLASS
                }

                const DESCRIPTION: &'static __tracewing::Class<'static> =
                    <__tracewing::Description<__Declaration, __FieldTypes, #count>>::CLASS;

                #[inline(always)]
                fn send<S: __tracewing::Sink>(&self, sink: S) {
                    let fields = #values;
                    if __LAYOUT.exact {
                        __tracewing::fixed::<{ __LAYOUT.length() }, { __LAYOUT.length().div_ceil(8) }, #ordered, _, S>(
                            &fields, sink,
                        );
                    } else {
                        __tracewing::gather::<{ __LAYOUT.words() }, { __LAYOUT.all_segments() }, #ordered, _, S>(
                            &fields, sink,
                        );
                    }
                }
            }
        };
    })
}

fn refuse_parameters(input: &DeriveInput) -> Result<()> {
    match input.generics.params.iter().find(|parameter| !matches!(parameter, GenericParam::Lifetime(_))) {
        None => Ok(()),
        Some(parameter) => Err(Error::new_spanned(
            parameter,
            "an event has lifetime parameters only: its class is one, with one layout; declare a struct for each type",
        )),
    }
}

fn recorded_fields(input: &DeriveInput) -> Result<Vec<Recorded<'_>>> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(
            &input.ident,
            "`Event` is derived for structs only; an enum without fields can be a field, with `EventField`",
        ));
    };
    let fields = match &data.fields {
        Fields::Named(named) => &named.named,
        Fields::Unit => return Ok(Vec::new()),
        Fields::Unnamed(unnamed) => {
            return Err(Error::new_spanned(
                unnamed,
                "the fields of an event have names: `struct Name { field: Type }`",
            ));
        }
    };
    let mut recorded = Vec::<Recorded<'_>>::new();
    for field in fields {
        let Some(ident) = &field.ident else { continue };
        let hints = OnField::read(&field.attrs)?;
        if let Some(skip) = hints.skip {
            if hints.name.is_some() || hints.base.is_some() || hints.unit.is_some() {
                return Err(Error::new(skip, "a field that is left out takes no other attributes"));
            }
            continue;
        }
        let span = hints.name.as_ref().map_or_else(|| ident.span(), LitStr::span);
        let name = hints.name.as_ref().map_or_else(|| ident.unraw().to_string(), LitStr::value);
        name::check_field(&name, span)?;
        if recorded.iter().any(|other| other.name == name) {
            return Err(Error::new(span, format!("two fields have the name `{name}`")));
        }
        if recorded.len() == 255 {
            return Err(Error::new(span, "an event has at most 255 fields"));
        }
        recorded.push(Recorded { ident, of_type: &field.ty, name, hints });
    }
    Ok(recorded)
}

/// The struct's declaration, as an implementation of `tracewing`'s trait `Declaration`.
fn declaration(input: &DeriveInput, class: &OnClass, fields: &[Recorded<'_>]) -> TokenStream {
    let event =
        class.name.as_ref().map_or_else(|| name::snake_case(&input.ident.unraw().to_string()), LitStr::value);
    let provider = match &class.provider {
        Some(provider) => quote!(#provider),
        None => quote!(__tracewing::crate_name(::core::module_path!())),
    };
    let level = class.level.clone().unwrap_or_else(|| Ident::new("Info", Span::call_site()));
    let major = class.major.unwrap_or(0);
    let description = description(&input.attrs);
    let print = class.print.as_ref().map_or_else(String::new, LitStr::value);
    let declared_at = input.ident.span().unwrap();
    let (file, line) = (declared_at.file(), declared_at.line() as u32);
    let fields = fields.iter().map(|field| {
        let Recorded { name, hints, .. } = field;
        let base = hints.base.as_ref().map_or_else(|| "Decimal".to_owned(), Ident::to_string);
        let base = Ident::new(&base, Span::call_site());
        let unit = hints.unit.as_ref().map_or_else(String::new, LitStr::value);
        quote!(__tracewing::FieldDeclaration { name: #name, base: __tracewing::Base::#base, unit: #unit })
    });
    quote! {
        struct __Declaration;
        impl __tracewing::Declaration for __Declaration {
            const NAME: &'static str = {
                const PROVIDER: &str = #provider;
                const BYTES: [u8; __tracewing::length_of_joined(PROVIDER, #event)] =
                    __tracewing::joined(PROVIDER, #event);
                match ::core::str::from_utf8(&BYTES) {
                    ::core::result::Result::Ok(name) => name,
                    ::core::result::Result::Err(_) => ::core::unreachable!(),
                }
            };
            const LEVEL: __tracewing::Level = __tracewing::Level::#level;
            const MAJOR: u8 = #major;
            const DESCRIPTION: &'static str = #description;
            const PRINT: &'static str = #print;
            const FILE: &'static str = #file;
            const LINE: u32 = #line;
            const FIELDS: &'static [__tracewing::FieldDeclaration] = &[#(#fields),*];
        }
        const _: () = if let ::core::option::Option::Some(mistake) = __tracewing::mistake::<__Declaration>() {
            ::core::panic!("{}", mistake)
        };
    }
}

/// Checks that types are field types and that hints fit them, each reported at the place of the mistake.
fn field_checks(fields: &[Recorded<'_>]) -> impl Iterator<Item = TokenStream> {
    fields.iter().map(|field| {
        let of_type = without_lifetimes(field.of_type);
        let is_field = quote_spanned! {field.of_type.span()=>
            const _: __tracewing::FieldType = __tracewing::field_type::<#of_type>();
        };
        let base_fits = field.hints.base.as_ref().map(|base| {
            let message = "`hex`, `octal` and `binary` are for integers";
            type_check(field, &Ident::new("is_integer", Span::call_site()), base.span(), message)
        });
        quote!(#is_field #base_fits)
    })
}

fn print_checks(form: Option<&LitStr>, fields: &[Recorded<'_>]) -> Result<Vec<TokenStream>> {
    let Some(form) = form else { return Ok(Vec::new()) };
    let span = form.span();
    let mut checks = Vec::new();
    for shown in print::parse(&form.value()).map_err(|message| Error::new(span, message))? {
        let Some(field) = fields.iter().find(|field| field.name == shown.field) else {
            return Err(Error::new(span, format!("the event records no field `{}`", shown.field)));
        };
        if shown.based {
            let message = format!("`{}` is shown as x, X, o or b, which are for integers", shown.field);
            checks.push(type_check(field, &Ident::new("is_integer", Span::call_site()), span, &message));
        }
        if shown.precise {
            let message = format!(
                "`{}` is shown with a precision, which is for floating-point numbers and texts",
                shown.field
            );
            checks.push(type_check(field, &Ident::new("has_precision", Span::call_site()), span, &message));
        }
    }
    Ok(checks)
}

fn type_check(field: &Recorded<'_>, predicate: &Ident, span: Span, message: &str) -> TokenStream {
    let of_type = without_lifetimes(field.of_type);
    quote_spanned! {span=>
        const _: () = ::core::assert!(__tracewing::field_type::<#of_type>().#predicate(), #message);
    }
}

/// The type with `'static` for all its lifetimes, for use in constants.
fn without_lifetimes(of_type: &Type) -> Type {
    struct Static;

    impl VisitMut for Static {
        fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
            *lifetime = Lifetime::new("'static", lifetime.span());
        }
    }

    let mut of_type = of_type.clone();
    Static.visit_type_mut(&mut of_type);
    of_type
}
