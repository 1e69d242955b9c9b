import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { compileExpression } from './compile.ts'
import { functions } from './functions.ts'

const page = readFileSync(new URL('../../../docs/spec/expressions.md', import.meta.url), 'utf8')
const NOW = Date.UTC(2026, 0, 1)

describe('functions', () => {
  it.each(functions)('$signature does what its example says', ({ name, signature, example }) => {
    expect(signature.startsWith(`${name}(`)).toBe(true)
    const { expression, problems } = compileExpression(example.text, { names: [] })
    expect(problems.filter(({ severity }) => severity === 'error')).toEqual([])
    expect(expression?.evaluate([], { now: NOW })).toBe(example.result)
  })

  it('stand in the reference as they are described here, and no others', () => {
    const rows = functions.map(
      ({ signature, description, example }) =>
        `| \`${signature}\` | ${description} | \`${example.text}\` → \`${JSON.stringify(example.result)}\` |`,
    )
    const [, after = ''] = page.split('compared with the code by docs.test.ts -->\n')
    const [table = ''] = after.split('\n\n')
    expect(table.split('\n').slice(2)).toEqual(rows)
  })

  it('are sorted by name', () => {
    const names = functions.map(({ name }) => name)
    expect(names).toEqual(names.toSorted((a, b) => a.toLowerCase().localeCompare(b.toLowerCase(), 'en')))
  })
})

describe('problems', () => {
  it('have codes that stand in the reference', async () => {
    const names = [
      { name: 'used', kind: 'number' },
      { name: 'ready', kind: 'boolean' },
    ] as const
    const texts = [
      ...[
        '',
        '@',
        '1.2.3',
        '"a',
        '"\\u1"',
        '* 1',
        '1 +',
        '(1',
        '1 2',
        '5(1)',
        '('.repeat(99),
        'x',
        'f()',
        'len()',
        '"a" - 1',
      ],
      ...['age(1)', '1 / 0', '"\\d"', 'ready || "a"', 'used == "a"', '1 ?? 2', ' '.repeat(20_000)],
    ]
    const codes = new Set(texts.flatMap((text) => compileExpression(text, { names }).problems.map(({ code }) => code)))
    for (const code of codes) expect(page, code).toContain(`\`${code}\``)
    expect(codes.size).toBe(22)
  })
})
