import { describe, expect, it } from 'vitest'
import { evaluateExpression } from './expression.ts'

const asked = { context: '{}', now: 0, functions: false }

describe('clusterpulse expression', () => {
  it('says what is missing where no expression is given, and lists functions where they are asked for', () => {
    const without = evaluateExpression(asked)
    expect(without).toMatchObject({ text: '', failed: true })
    expect(without.notes.join()).toMatch(/no expression given.*--functions/)
    const list = evaluateExpression({ ...asked, functions: true })
    expect(list).toMatchObject({ notes: [], failed: false })
    expect(list.text).toContain('round')
  })
})
