// Fills in a form as a person does: field by field, with what is found at each place.

/** Returns the id of the field of a place; top is the one of the whole input. */
const idOf = (top, pointer) => top + pointer.replace(/[^A-Za-z0-9]/gu, (c) => `_${c.codePointAt(0).toString(16)}_`);
const below = (pointer, name) => `${pointer}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;

/** Fills the form of the page so that it puts together a value. picks names alternatives by their places. */
export async function fill(page, value, picks = {}) {
  const form = page.locator('section[aria-label="Run it"] form');
  await form.waitFor();
  const top = await form.locator("fieldset [id$='-'], fieldset [id$='--kind']").first().getAttribute("id");
  await into(page, top.replace(/-kind$/, ""), "", value, picks);
}

async function into(page, top, pointer, value, picks) {
  const id = idOf(top, pointer);
  const field = page.locator(`[id="${id}"]`);
  if (picks[pointer] !== undefined) {
    await page.locator(`[id="${id}-kind"]`).selectOption({ label: picks[pointer] });
    await field.waitFor();
  }
  await field.waitFor();
  let tag = await field.evaluate((e) => e.tagName);
  if (tag === "BUTTON") {
    await field.click();
    await page.locator(`fieldset[id="${id}"]`).waitFor();
    tag = "FIELDSET";
  }
  if (tag === "FIELDSET" || tag === "DIV") {
    for (const [name, member] of Object.entries(value)) {
      const place = below(pointer, name);
      if (Array.isArray(value)) {
        const item = page.locator(`[id="${idOf(top, place)}"], [id="${idOf(top, place)}-kind"]`);
        if ((await item.count()) === 0) await field.locator(":scope > .row").last().getByRole("button", { name: /^Add/ }).click();
      } else {
        const there = page.locator(`[id="${idOf(top, place)}"], [id="${idOf(top, place)}-kind"]`);
        if ((await there.count()) === 0) {
          await page.locator(`[id="${id}-extra"]`).fill(name);
          await field.locator(":scope > .row").last().getByRole("button", { name: "Add a member" }).click();
        }
      }
      await into(page, top, place, member, picks);
    }
    return;
  }
  switch (tag) {
    case "P":
      return; // what is fixed
    case "SELECT":
      if (typeof value === "object" && value !== null) await field.selectOption(value.$secret);
      else {
        const label = value === true ? "Yes" : value === false ? "No" : String(value);
        const titles = await field.locator("option").allTextContents();
        if (titles.includes(label)) await field.selectOption({ label });
        else await field.selectOption({ label: titles.find((t) => t.toLowerCase().startsWith(label.toLowerCase())) });
      }
      return;
    case "INPUT":
      if ((await field.getAttribute("type")) === "checkbox") return field.setChecked(value === true);
      return field.fill(String(value));
    default: {
      const json = await field.evaluate((e) => e.classList.contains("mono"));
      return field.fill(json ? JSON.stringify(value) : String(value));
    }
  }
}
