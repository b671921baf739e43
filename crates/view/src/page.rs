//! The page's files, which are part of the program: nothing is read from disk or loaded from elsewhere.

use crate::reply::Reply;

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

macro_rules! files {
    ($($path:literal $kind:ident $file:literal,)*) => {
        /// Paths, kinds and contents.
        const FILES: &[(&str, &str, &str)] =
            &[$(($path, $kind, include_str!(concat!("../page/", $file)))),*];
    };
}

files! {
    "/" HTML "index.html",
    "/style.css" STYLE "style.css",
    "/icon.svg" IMAGE "icon.svg",
    "/main.js" SCRIPT "main.js",
    "/about.js" SCRIPT "about.js",
    "/again.js" SCRIPT "again.js",
    "/filter.js" SCRIPT "filter.js",
    "/filling.js" SCRIPT "filling.js",
    "/live.js" SCRIPT "live.js",
    "/marks.js" SCRIPT "marks.js",
    "/page.js" SCRIPT "page.js",
    "/keys.js" SCRIPT "keys.js",
    "/kin.js" SCRIPT "kin.js",
    "/series.js" SCRIPT "series.js",
    "/sides.js" SCRIPT "sides.js",
    "/compare.js" SCRIPT "compare.js",
    "/compared.js" SCRIPT "compared.js",
    "/panels.js" SCRIPT "panels.js",
    "/connection.js" SCRIPT "connection.js",
    "/opening.js" SCRIPT "opening.js",
    "/others.js" SCRIPT "others.js",
    "/tip.js" SCRIPT "tip.js",
    "/losses.js" SCRIPT "losses.js",
    "/missing.js" SCRIPT "missing.js",
    "/api.js" SCRIPT "api.js",
    "/time.js" SCRIPT "time.js",
    "/tracks.js" SCRIPT "tracks.js",
    "/tiles.js" SCRIPT "tiles.js",
    "/store.js" SCRIPT "store.js",
    "/pixels.js" SCRIPT "pixels.js",
    "/axis.js" SCRIPT "axis.js",
    "/picture.js" SCRIPT "picture.js",
    "/window.js" SCRIPT "window.js",
    "/input.js" SCRIPT "input.js",
    "/selection.js" SCRIPT "selection.js",
    "/events.js" SCRIPT "events.js",
    "/longest.js" SCRIPT "longest.js",
    "/job.js" SCRIPT "job.js",
    "/why.js" SCRIPT "why.js",
    "/share.js" SCRIPT "share.js",
    "/flame.js" SCRIPT "flame.js",
    "/analyses.js" SCRIPT "analyses.js",
    "/tables.js" SCRIPT "tables.js",
    "/names.js" SCRIPT "names.js",
    "/notes.js" SCRIPT "notes.js",
    "/place.js" SCRIPT "place.js",
    "/polls.js" SCRIPT "polls.js",
    "/samples.js" SCRIPT "samples.js",
    "/search.js" SCRIPT "search.js",
    "/statistics.js" SCRIPT "statistics.js",
    "/classes.js" SCRIPT "classes.js",
}

/// The file at a path.
pub(crate) fn file(path: &str) -> Option<Reply> {
    let (_, kind, text) = FILES.iter().find(|(known, ..)| *known == path)?;
    Some(Reply::file(kind, text))
}

#[cfg(test)]
mod tests {
    use super::FILES;

    #[test]
    fn the_page_needs_nothing_else() {
        for (path, _, text) in FILES {
            for elsewhere in
                ["https://", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
            {
                assert!(!text.contains(elsewhere), "{path} has {elsewhere}");
            }
            for imported in text.lines().filter(|line| line.starts_with("import")) {
                let from = imported.split('"').nth(1).unwrap().trim_start_matches('.');
                assert!(FILES.iter().any(|(known, ..)| *known == from), "{path}: {imported}");
            }
        }
    }
}
