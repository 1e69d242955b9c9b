import type { ReactNode } from 'react'

interface FieldProps {
  readonly id: string
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly placeholder?: string
  readonly hint?: string
  readonly required?: boolean
  /** suggestions */
  readonly options?: readonly string[]
}

export function Field({
  id,
  label,
  value,
  onChange,
  placeholder,
  hint,
  required = false,
  options,
}: FieldProps): ReactNode {
  return (
    <label className="field" htmlFor={id}>
      <span className="field-label">
        {label}
        {hint && <span className="field-hint"> {hint}</span>}
      </span>
      <input
        id={id}
        value={value}
        placeholder={placeholder}
        required={required}
        maxLength={1024}
        spellCheck={false}
        autoCapitalize="none"
        autoComplete="off"
        list={options ? `${id}-options` : undefined}
        onChange={(event) => onChange(event.target.value)}
      />
      {options && (
        <datalist id={`${id}-options`}>
          {options.map((option) => (
            <option key={option} value={option} />
          ))}
        </datalist>
      )}
    </label>
  )
}
