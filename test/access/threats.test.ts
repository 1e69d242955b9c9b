import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from './bundle.ts'

const reference = /`([^`\s]+\.test\.ts)`: ((?:"[^"]+"(?:; )?)+)/g

/** Every test that the threat model names: `path`: "title"; "another title of the same file". */
function namedTests(text: string): readonly { readonly file: string; readonly title: string }[] {
  return [...text.matchAll(reference)].flatMap(([, file = '', titles = '']) =>
    [...titles.matchAll(/"([^"]+)"/g)].map(([, title = '']) => ({ file, title })),
  )
}

const threats = readFileSync(join(root, 'docs/threat-model.md'), 'utf8')

describe('the threat model', () => {
  const named = namedTests(threats)

  it('names at least one test for every threat', () => {
    const rows = threats.split('\n').filter((line) => line.startsWith('| ') && line.split('|').length === 5)
    const of = rows.filter((line) => !/^\| (Threat|Asset) \|/.test(line) && !line.startsWith('|---'))
    expect(of.length).toBeGreaterThan(30)
    expect(of.filter((line) => namedTests(line).length === 0)).toEqual([])
  })

  it('names every test so that it is looked for: `path`: "title"; "title". `path`: "title"', () => {
    const shownBy = threats
      .split('\n')
      .flatMap((line) => (line.startsWith('| ') ? [line.split(' | ').at(-1) ?? ''] : []))
    const left = shownBy.map((cell) =>
      cell.replaceAll(reference, '').replace(/`test\/access\/faults\.ts`: "[^"]+"/, ''),
    )
    expect(left.filter((cell) => /\.ts`|"/.test(cell))).toEqual([])
  })

  it('names the listener of the agents, the index of Redis, the endpoints of members, damaged files, what was put back, and the end of the trail', () => {
    for (const threat of [
      'agents out of their listener',
      "vanishes from Redis's index",
      'Who may edit ClusterConnections',
      'A file of the data folder',
      'A backup or a dump',
      'The trail is changed',
    ])
      expect(threats).toContain(threat)
  })

  it.each(named)('is shown by $file: $title', ({ file, title }) => {
    const path = join(root, file)
    expect(existsSync(path)).toBe(true)
    // A title stands in quotes, with the escapes of the language.
    const text = readFileSync(path, 'utf8').replaceAll("\\'", "'")
    const stands = ["'", '"', '`'].some((quote) => text.includes(`${quote}${title}${quote}`))
    expect(stands, `no test of ${file} is called so`).toBe(true)
  })
})
