import type { Answer, Counted, Effect } from './session-events.ts'

/** What is to be done because of one event, in order. */
export class Effects {
  #list: Effect[] = []

  /** All since the last call. */
  take(): readonly Effect[] {
    const list = this.#list
    this.#list = []
    return list
  }

  add(effect: Effect): void {
    this.#list.push(effect)
  }

  send(answer: Answer): void {
    this.#list.push({ kind: 'send', answer })
  }

  count(what: Counted): void {
    this.#list.push({ kind: 'count', what })
  }

  note(level: 'debug' | 'info' | 'warn', facts: object, sentence: string): void {
    this.#list.push({ kind: 'note', level, facts, sentence })
  }
}
