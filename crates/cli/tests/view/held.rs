//! Answers that a test holds back, so that a page has to do with late ones.

/// What a page runs first. `hold(path, text)` holds back the answers to questions with this text until
/// `release()`; `held` is how many there are. `asked` has the questions that were answered, with their paths.
/// `quiet()` ends when no question is in flight, and none follows.
pub const HOLD: &str = "(() => {
    const real = window.fetch;
    let [inFlight, wanted, go, gate] = [0, null, () => {}, null];
    [window.held, window.asked] = [0, []];
    window.hold = (path, text = '') => {
        [wanted, gate, window.held] = [{ path, text }, new Promise((done) => (go = done)), 0];
    };
    window.release = () => {
        wanted = null;
        go();
    };
    window.fetch = async (path, init) => {
        inFlight++;
        try {
            const answer = await real(path, init);
            asked.push([path, init.body]);
            if (path === wanted?.path && init.body.includes(wanted.text)) {
                held++;
                await gate;
            }
            return answer;
        } finally {
            inFlight--;
        }
    };
    window.quiet = async () => {
        for (let still = 0; still < 5; still = inFlight > 0 ? 0 : still + 1) await new Promise((done) => setTimeout(done, 20));
        return true;
    };
})()";
