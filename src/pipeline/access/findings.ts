import { hasControlCharacter, quoted } from './texts.ts'
import type { Finding } from './types.ts'

const MAX_FINDINGS = 1000

/** What was found wrong, in order and with errors first; of each severity a thousand, beyond that only counted. */
export class FindingList {
  readonly #found: Record<Finding['severity'], Finding[]> = { error: [], warning: [] }
  #more = 0

  error(code: string, path: string, message: string): void {
    this.#add({ severity: 'error', code, path, message })
  }

  warning(code: string, path: string, message: string): void {
    this.#add({ severity: 'warning', code, path, message })
  }

  get hasErrors(): boolean {
    return this.#found.error.length > 0
  }

  list(): readonly Finding[] {
    const all = [...this.#found.error, ...this.#found.warning]
    if (this.#more === 0) return all
    const message = `${this.#more} more findings are not listed; correct these first`
    return [...all, { severity: 'warning', code: 'more_findings', path: 'spec', message }]
  }

  #add(finding: Finding): void {
    const list = this.#found[finding.severity]
    if (list.length < MAX_FINDINGS) list.push(finding)
    else this.#more++
  }
}

/** Texts that name something are never empty, and on one line. */
export function checkPlain(text: string, path: string, findings: FindingList): void {
  if (hasControlCharacter(text)) {
    const message = `${quoted(text)} holds a line feed or another control character, so it matches no name: remove it`
    findings.error('control_character', path, message)
  } else if (text === '') findings.warning('text_empty', path, 'an empty text matches no name: remove it')
}
