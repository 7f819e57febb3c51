// Values of the report as people read them. The script of the page follows in the same element.
"use strict";
const whole = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const percent = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });
const count = (value) => (value === undefined ? "not known" : whole.format(value));
const money = (value) => {
  if (value === undefined) return "not known";
  if (value > 0 && value < 0.01) return "< $0.01";
  return "$" + value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
};
const time = (text) => (text === undefined ? "no time" : text.slice(0, 16).replace("T", " ") + " UTC");
const span = (ms) => {
  if (ms === undefined) return "not known";
  const seconds = Math.round(ms / 1000);
  if (ms < 1000) return `${ms} ms`;
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
};
const rate = (errors, calls) => (calls > 0 ? percent.format(errors / calls) : "");
