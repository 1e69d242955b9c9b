import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'

const texts = [
  ...readdirSync('.').filter((name) => name.endsWith('.md')),
  ...['docs', 'deploy', 'bench'].flatMap((root) =>
    readdirSync(root, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => join(root, name)),
  ),
]
const proseOf = (path: string): string =>
  readFileSync(path, 'utf8')
    .replace(/^```[\s\S]*?^```/gm, '')
    .replace(/`[^`\n]*`/g, (code) => (code.includes('](') ? '' : code))

/** As GitHub names them, the second of a name with a number. */
function anchorsOf(path: string): ReadonlySet<string> {
  const anchors = new Set<string>()
  for (const [, heading = ''] of proseOf(path).matchAll(/^#{1,6} (.*)$/gm)) {
    const words = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const slug = words.replace(/[^\p{L}\p{N}\- _]/gu, '').replaceAll(' ', '-')
    let anchor = slug
    for (let n = 1; anchors.has(anchor); n++) anchor = `${slug}-${n}`
    anchors.add(anchor)
  }
  return anchors
}

it('every link of the documentation leads to a file that is there, and to a heading in it', () => {
  const broken: string[] = []
  let links = 0
  for (const path of texts) {
    for (const [, target = ''] of proseOf(path).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue
      links++
      const [file = '', anchor = ''] = target.split('#')
      const at = file === '' ? path : join(dirname(path), file)
      const leads = existsSync(at) && (anchor === '' || !at.endsWith('.md') || anchorsOf(at).has(anchor))
      if (!leads) broken.push(`${path}: ${target}`)
    }
  }
  expect(links).toBeGreaterThan(50)
  expect(broken).toEqual([])
})
