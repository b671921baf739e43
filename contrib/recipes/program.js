// Computes for a second in one function.
function work(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) sum = (sum + i * i) % 1000003;
  return sum;
}
const end = Date.now() + 1000;
let calls = 0;
while (Date.now() < end) {
  work(20000);
  calls++;
}
console.log(calls);
