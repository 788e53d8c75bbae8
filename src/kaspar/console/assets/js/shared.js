import { useEffect, useState } from "./ui.js";

/** The value of a Shared, kept up to date in a component. */
export function useShared(shared) {
  const [value, setValue] = useState(shared.value);
  useEffect(() => {
    setValue(shared.value);
    return shared.follow(setValue);
  }, [shared]);
  return value;
}
