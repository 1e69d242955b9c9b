import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

/** The space of young objects after many of them outlived a collection, bytes. Flags hold for a whole process, so it has one of its own. */
function youngBytes(before: string): number {
  const heap = JSON.stringify(fileURLToPath(new URL('heap.ts', import.meta.url)))
  const program = `
    import { getHeapSpaceStatistics } from 'node:v8'
    const heap = await import(${heap})
    ${before}
    const kept = []
    for (let i = 0; i < 600_000; i++) kept[i % 200_000] = { i }
    console.log(getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').space_size)
  `
  return Number(
    execFileSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program], { encoding: 'utf8' }),
  )
}

describe('keepProcessSmall', () => {
  it('keeps the space of young objects as small as it was, which else grows with use', () => {
    expect(youngBytes('')).toBeGreaterThan(8 * 2 ** 20)
    expect(youngBytes('heap.keepProcessSmall()')).toBeLessThanOrEqual(4 * 2 ** 20)
  })
})
