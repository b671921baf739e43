//! The layer: receives a program's events and spans from `tracing` and records them.

use crate::entered;
use crate::interest::{self, Recorded};
use crate::record::{record_visited, record_words};
use crate::site::{self, SpanClasses};
use crate::spans::{Living, Spans};
use core::any::TypeId;
use tracewing::dynamic::span;
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::Interest;
use tracing_core::{Event, Metadata, Subscriber};
use tracing_subscriber::filter::Filtered;
use tracing_subscriber::layer::{Context, Identity};
use tracing_subscriber::registry::LookupSpan;

/// Records events and spans of `tracing`; made by [`layer`].
///
/// While there is no recording, it switches off all call sites that no other layer enables. It works together
/// with other layers and with filters, its own ([`with_filter`](tracing_subscriber::Layer::with_filter)) or
/// others'.
pub struct Layer<S> {
    /// Represents the layer where `tracing` asks for the interest in a call site: an empty layer with a
    /// filter of its own. Events bypass it, which saves that filter's cost per event.
    interest: Filtered<Identity, Recorded, S>,
    spans: Spans,
}

/// A layer that records.
///
/// ```
/// use tracing_subscriber::prelude::*;
///
/// tracing_subscriber::registry().with(tracewing_tracing::layer()).init();
/// ```
pub fn layer<S>() -> Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    interest::begin();
    Layer { interest: Filtered::new(Identity::new(), Recorded), spans: Spans::new() }
}

impl<S> tracing_subscriber::Layer<S> for Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a> + 'static,
{
    fn on_layer(&mut self, subscriber: &mut S) {
        self.interest.on_layer(subscriber);
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        self.interest.register_callsite(metadata)
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let site = site::of(event.metadata());
        if !site.first.may_be_enabled() {
            return;
        }
        let span = match event.parent() {
            Some(parent) => self.nearest(parent, &context),
            None if event.is_root() => 0,
            None => span::innermost(),
        };
        if record_visited(&site.first, [span], |values| event.record(values)) && !site.may_be_enabled() {
            interest::ask_again_soon();
        }
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, number: &Id, context: Context<'_, S>) {
        let site = site::of(attributes.metadata());
        let Some(classes) = site.span.as_ref().filter(|_| site.may_be_enabled()) else { return };
        let parent = match attributes.parent() {
            Some(parent) => self.nearest(parent, &context),
            None if attributes.is_root() => 0,
            None => span::innermost(),
        };
        let living = Living { id: span::next_id(), site };
        let is_new = !site.first.is_known();
        if is_new {
            classes.make_known();
        }
        record_visited(&site.first, [living.id, parent], |values| attributes.record(values));
        if site.may_be_enabled() {
            self.spans.insert(number.into_u64(), living);
        } else if is_new {
            interest::ask_again_soon();
        }
    }

    fn on_record(&self, number: &Id, new: &Record<'_>, _: Context<'_, S>) {
        if let Some((living, classes)) = self.living(number)
            && classes.record.may_be_enabled()
        {
            record_visited(&classes.record, [living.id], |values| new.record(values));
        }
    }

    fn on_follows_from(&self, number: &Id, follows: &Id, context: Context<'_, S>) {
        if let Some((living, classes)) = self.living(number)
            && let Some(class) = classes.follows.if_on()
        {
            record_words(class, &[living.id, self.nearest(follows, &context)]);
        }
    }

    fn on_enter(&self, number: &Id, _: Context<'_, S>) {
        if let Some((living, classes)) = self.living(number) {
            entered::enter(living.id);
            if let Some(class) = classes.enter.if_on() {
                record_words(class, &[living.id]);
            }
        }
    }

    fn on_exit(&self, number: &Id, _: Context<'_, S>) {
        if let Some((living, classes)) = self.living(number) {
            entered::exit(living.id);
            if let Some(class) = classes.exit.if_on() {
                record_words(class, &[living.id]);
            }
        }
    }

    fn on_close(&self, number: Id, _: Context<'_, S>) {
        if let Some(living) = self.spans.remove(number.into_u64())
            && let Some(classes) = &living.site.span
            && let Some(class) = classes.close.if_on()
        {
            record_words(class, &[living.id]);
        }
    }

    // SAFETY: returns addresses of values of the types that `id` names, which live as long as this one.
    #[doc(hidden)]
    unsafe fn downcast_raw(&self, id: TypeId) -> Option<*const ()> {
        if id == TypeId::of::<Self>() {
            return Some(core::ptr::from_ref(self).cast());
        }
        // SAFETY: the caller's. This is how `tracing` learns that the layer has a filter of its own.
        unsafe { self.interest.downcast_raw(id) }
    }
}

impl<S> Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a> + 'static,
{
    fn living(&self, number: &Id) -> Option<(Living, &'static SpanClasses)> {
        let living = self.spans.find(number.into_u64())?;
        Some((living, living.site.span.as_deref()?))
    }

    /// The id of the span with this number, or of the nearest enclosing span that is recorded; 0 if there is
    /// none.
    fn nearest(&self, number: &Id, context: &Context<'_, S>) -> u64 {
        if let Some(living) = self.spans.find(number.into_u64()) {
            return living.id;
        }
        let mut around = context.span(number).into_iter().flat_map(|span| span.scope());
        around.find_map(|span| self.spans.find(span.id().into_u64())).map_or(0, |living| living.id)
    }
}
