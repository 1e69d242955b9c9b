/** CPU time of the longest stretch without a look at what else came, ms: what else runs on the machine counts for nothing. */
export async function longestHold(during: () => Promise<unknown>): Promise<number> {
  let [isOver, longest, before] = [false, 0, process.cpuUsage()]
  const look = () => {
    const { user, system } = process.cpuUsage(before)
    longest = Math.max(longest, (user + system) / 1000)
    before = process.cpuUsage()
    if (!isOver) setImmediate(look)
  }
  look()
  await during()
  isOver = true
  return longest
}
