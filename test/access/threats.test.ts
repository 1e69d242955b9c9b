import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from './bundle.ts'

/** Every test that the threat model names: `path`: "title"; "another title of the same file". */
function namedTests(text: string): readonly { readonly file: string; readonly title: string }[] {
  return [...text.matchAll(/`([^`\s]+\.test\.ts)`: ((?:"[^"]+"(?:; )?)+)/g)].flatMap(([, file = '', titles = '']) =>
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

  it.each(named)('is shown by $file: $title', ({ file, title }) => {
    const path = join(root, file)
    expect(existsSync(path)).toBe(true)
    // A title stands in quotes, with the escapes of the language.
    const text = readFileSync(path, 'utf8').replaceAll("\\'", "'")
    const stands = ["'", '"', '`'].some((quote) => text.includes(`${quote}${title}${quote}`))
    expect(stands, `no test of ${file} is called so`).toBe(true)
  })
})
